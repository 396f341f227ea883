// A window of VS Code: driven by keys and read by what is on the screen; documents save themselves and are read from the
// disk. Knows neither tests nor how VS Code was started.

import * as fs from "node:fs";
import * as path from "node:path";

import type { Locator, Page } from "playwright-core";

const FAILED = path.join(import.meta.dirname, "failed");

/** How long anything may take before it counts as never. */
export const PATIENCE = Number(process.env.PATIENCE ?? 60_000);

/** Longer than VS Code takes to show code actions; if it takes longer, they are asked for once more. */
const ASK_AGAIN = 3000;

/** One window. */
export class Window {
  readonly page: Page;
  private readonly file: string;

  constructor(page: Page, file: string) {
    this.page = page;
    this.file = file;
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) {
      await this.page.keyboard.press(key);
    }
  }

  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text, { delay: 20 });
  }

  /** Run a command by its title. */
  async command(title: string): Promise<void> {
    await this.press("F1");
    await this.page.locator(".quick-input-widget input").first().fill(`>${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row").getByText(title, { exact: true }).first().click();
  }

  /** Type into the question that is open. */
  async answer(text: string): Promise<void> {
    const input = this.page.locator(".quick-input-widget input").first();
    await input.waitFor();
    await input.fill(text);
    await this.press("Enter");
  }

  /** Choose from the list that is open. */
  async pick(label: string | RegExp): Promise<void> {
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: label }).first().click();
  }

  /** Choose a code action for the selection. Shortly after a selection has changed VS Code looks for actions by itself
   * and then drops what it was asked for by a key, without a sign of it: so it is asked again until it answers. */
  async action(title: string): Promise<void> {
    const row = this.page.locator(".action-widget .monaco-list-row", { hasText: title }).first();
    await until(`the action ${title}`, async () => {
      await this.press("Control+.");
      return row.waitFor({ timeout: ASK_AGAIN }).then(() => true, () => false);
    });
    await row.click();
  }

  /** Wait until this is the ghost text, lines joined by newlines. */
  async ghost(text: string): Promise<void> {
    await until(`ghost text ${JSON.stringify(text)}`, async () => (await this.ghostText()) === text, () => this.ghostText());
  }

  async ghostText(): Promise<string> {
    const inline = await this.page.locator(".ghost-text-decoration, .ghost-text-decoration-preview").allTextContents();
    const lines = await this.page.locator(".suggest-preview-text .view-line, .ghost-text .view-line").allTextContents();
    return [inline.join(""), ...lines].join("\n").replace(/\u00a0|·/g, " ");
  }

  /** Wait until the difference shows this line as the new text; undefined: until there is no difference any more. */
  async proposed(line: string | undefined): Promise<void> {
    const lines = this.page.locator(".monaco-diff-editor .editor.modified .view-line");
    const seen = async () => (await lines.allTextContents()).map((each) => each.replace(/\u00a0/g, " "));
    await until(`proposed ${line}`, async () => (line === undefined ? (await seen()).length === 0 : (await seen()).includes(line)), seen);
  }

  /** Answer the edit that is shown, by key. */
  async decide(key: "Control+Enter" | "Escape"): Promise<void> {
    await this.page.locator(".editor-actions .codicon-check").waitFor();
    await this.page.locator(".monaco-diff-editor .monaco-editor.focused").waitFor();
    await this.press(key);
    await this.proposed(undefined);
    await this.focused();
  }

  /** Wait until this is the text on the screen. */
  async shows(text: string): Promise<void> {
    const read = () =>
      this.page.locator(".editor-instance .view-line").evaluateAll((lines) =>
        lines
          .sort((a, b) => parseInt(a.style.top) - parseInt(b.style.top))
          .map((line) => (line.textContent ?? "").replace(/[\u00a0\u200c]/g, " ").trimEnd())
          .join("\n"),
      );
    await until(`text ${JSON.stringify(text)}`, async () => (await read()) === text, read);
  }

  /** Wait for a line that contains this, in any editor or panel. */
  async line(text: string): Promise<void> {
    await this.page.locator(".view-line", { hasText: text }).first().waitFor();
  }

  /** Wait until keys go to the text. */
  async focused(): Promise<void> {
    await this.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  }

  /** Wait until the file, which is saved by itself, reads so. */
  async saved(text: string): Promise<void> {
    const read = () => fs.readFileSync(this.file, "utf8");
    await until(`file ${JSON.stringify(text)}`, () => read() === text, read);
  }

  /** Wait until the status bar says this, as in the tooltip. */
  async state(sentence: string | RegExp): Promise<void> {
    const wanted = typeof sentence === "string" ? new RegExp(`midfill: ${sentence}`) : sentence;
    const label = async () => (await this.item.locator("[aria-label]").first().getAttribute("aria-label")) ?? "";
    await this.item.waitFor();
    await until(`status ${wanted}`, async () => wanted.test(await label()), label);
  }

  /** Of the status bar. */
  get item(): Locator {
    return this.page.locator('.statusbar-item[id$="midfill.status"]').first();
  }

  /** Wait for a message that contains this. */
  async message(text: string | RegExp): Promise<string> {
    const toast = this.page.locator(".notification-list-item-message", { hasText: text }).first();
    await toast.waitFor();
    return (await toast.textContent()) ?? "";
  }

  /** All messages that are on the screen. */
  notices(): Promise<string[]> {
    return this.page.locator(".notification-list-item-message").allTextContents();
  }

  /** What is on the screen, for a test that has failed. */
  async picture(context: { name: string; passed?: boolean }): Promise<void> {
    if (context.passed === false) {
      fs.mkdirSync(FAILED, { recursive: true });
      await this.page.screenshot({ path: path.join(FAILED, `${context.name.replace(/\W+/g, "-")}.png`) });
    }
  }

  /** Press a button of a message. */
  async button(name: string): Promise<void> {
    await this.page.locator(".notification-list-item .monaco-button, .monaco-dialog-box .monaco-button", { hasText: name }).first().click();
  }
}

/** Wait until `test` holds; says what was there instead, from `seen`, if it never does. */
export async function until(what: string, test: () => Promise<boolean> | boolean, seen?: () => unknown): Promise<void> {
  const end = Date.now() + PATIENCE;
  while (!(await test())) {
    if (Date.now() > end) {
      throw new Error(`never: ${what}${seen ? `, but ${JSON.stringify(await seen())}` : ""}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
