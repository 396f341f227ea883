// VS Code as a user has it: code-server with the packaged extension, and a window of it in headless Chromium. Windows are
// driven by keys and read by what is on the screen; documents save themselves and are read from the disk. Knows no tests.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";

import { chromium, type Browser, type Locator, type Page } from "playwright-core";

const HERE = import.meta.dirname;
export const ROOT = path.resolve(HERE, "../../..");
const SERVER = path.join(HERE, "node_modules/code-server/out/node/entry.js");
const VSIX = path.resolve(HERE, "../midfill.vsix");
const FAILED = path.join(HERE, "failed");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** How long anything may take before it counts as never. */
export const PATIENCE = Number(process.env.PATIENCE ?? 60_000);

/** Longer than VS Code takes to show code actions; if it takes longer, they are asked for once more. */
const ASK_AGAIN = 3000;

/** Of a user who wants to see midfill only, and quickly. */
const SETTINGS = {
  "chat.disableAIFeatures": true,
  "editor.minimap.enabled": false,
  "editor.wordBasedSuggestions": "off",
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
  "editor.accessibilitySupport": "off",
  "editor.cursorBlinking": "solid",
  "files.autoSave": "afterDelay",
  "files.autoSaveDelay": 50,
  "git.enabled": false,
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "window.commandCenter": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

export const MIDFILL = path.join(ROOT, ".venv/bin/midfill");

export interface Wishes {
  /** Of the scripted engine; undefined: the real one. An entry with `held` is answered when `release` is called. */
  readonly script?: readonly { held?: boolean; [key: string]: unknown }[];
  readonly settings?: Record<string, unknown>;
  readonly files: Record<string, string>;
  /** The program that the setting midfill.path names; "": none. */
  readonly program?: string;
  /** More settings of the machine. */
  readonly machine?: Record<string, unknown>;
}

/** A running VS Code server with its own home, workspace and extensions. */
export class Editor {
  readonly folder = fs.mkdtempSync(path.join(os.tmpdir(), "midfill-e2e-"));
  readonly workspace = path.join(this.folder, "workspace");
  readonly env: NodeJS.ProcessEnv;
  private readonly gate = path.join(this.folder, "released");
  private readonly log = path.join(this.folder, "asked.jsonl");
  private process!: ChildProcess;
  private browser!: Browser;
  private port = 0;

  private constructor() {
    const home = (name: string) => path.join(this.folder, name);
    this.env = {
      ...process.env,
      PATH: process.env.PATH!.split(":").filter((folder) => !fs.existsSync(path.join(folder, "midfill"))).join(":"),
      HOME: home("home"),
      XDG_CONFIG_HOME: home("config"),
      XDG_STATE_HOME: home("state"),
      XDG_DATA_HOME: home("data"),
      MIDFILL_RUNTIME_DIR: home("run"),
      OMP_NUM_THREADS: "1",
    };
    delete this.env.VSCODE_IPC_HOOK_CLI;
  }

  static async start(wishes: Wishes): Promise<Editor> {
    const editor = new Editor();
    editor.write(wishes);
    const [ud, extensions] = [path.join(editor.folder, "ud"), path.join(editor.folder, "extensions")];
    const common = [SERVER, "--user-data-dir", ud, "--extensions-dir", extensions];
    const installed = spawnSync(process.execPath, [...common, "--install-extension", VSIX], { env: editor.env, encoding: "utf8" });
    if (installed.status !== 0) {
      throw new Error(`the extension cannot be installed: ${installed.stdout}${installed.stderr}`);
    }
    editor.port = await freePort();
    const options = ["--auth", "none", "--bind-addr", `127.0.0.1:${editor.port}`, "--disable-telemetry", "--disable-update-check"];
    const log = fs.openSync(path.join(editor.folder, "server.log"), "w");
    editor.process = spawn(
      process.execPath,
      [...common, ...options, "--disable-workspace-trust", "--reconnection-grace-time", "5", editor.workspace],
      { env: editor.env, stdio: ["ignore", log, log] },
    );
    await until("the editor's server answers", () => fetch(`http://127.0.0.1:${editor.port}/healthz`).then((r) => r.ok, () => false));
    editor.browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
    return editor;
  }

  /** A window with `file` in front and the cursor at its start, in which midfill is `state`. */
  async window(file: string, state = "ready"): Promise<Window> {
    const page = await this.browser.newPage({ viewport: { width: 1000, height: 620 } });
    page.setDefaultTimeout(PATIENCE);
    const authority = `127.0.0.1:${this.port}`;
    const payload = JSON.stringify([["openFile", `vscode-remote://${authority}${path.join(this.workspace, file)}`]]);
    await page.goto(`http://${authority}/?folder=${this.workspace}&payload=${encodeURIComponent(payload)}`);
    const window = new Window(page, path.join(this.workspace, file));
    await page.locator(".monaco-editor .view-lines").first().click();
    if (state) {
      await window.state(state);
    }
    return window;
  }

  /** `midfill` on the command line, in the same home. */
  midfill(...args: string[]): string {
    return spawnSync(MIDFILL, args, { env: this.env, encoding: "utf8", cwd: this.folder }).stdout;
  }

  /** What the scripted engine was asked. */
  asked(): { instruction?: string; seed: number }[] {
    return !fs.existsSync(this.log) ? [] : fs.readFileSync(this.log, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  }

  /** Let the answer go that the scripted engine holds. */
  release(): void {
    fs.writeFileSync(this.gate, "");
  }

  async stop(): Promise<void> {
    await this.browser?.close();
    this.midfill("engine", "stop");
    if (this.process && this.process.exitCode === null) {
      this.process.kill();
      await once(this.process, "exit");
    }
    fs.rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  private write(wishes: Wishes): void {
    for (const [name, text] of Object.entries(wishes.files)) {
      const file = path.join(this.workspace, name);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, text);
    }
    fs.mkdirSync(this.env.HOME!, { recursive: true });
    const script = path.join(this.folder, "script.json");
    const entries = (wishes.script ?? []).map(({ held, ...entry }) => (held ? { ...entry, wait_for: this.gate } : entry));
    fs.writeFileSync(script, JSON.stringify([{ log: this.log }, ...entries]));
    const engine = wishes.script ? ` --engine 'scripted:${script}'` : "";
    const program = path.join(this.folder, "midfill");
    fs.writeFileSync(program, `#!/bin/sh\n[ "$1" = lsp ] && exec '${MIDFILL}' "$@"${engine}\nexec '${MIDFILL}' "$@"\n`, { mode: 0o755 });
    const machine = { ...(wishes.program === "" ? {} : { "midfill.path": wishes.program ?? program }), ...wishes.machine };
    for (const [place, settings] of [["User", { ...SETTINGS, ...wishes.settings }], ["Machine", machine]] as const) {
      fs.mkdirSync(path.join(this.folder, "ud", place), { recursive: true });
      fs.writeFileSync(path.join(this.folder, "ud", place, "settings.json"), JSON.stringify(settings));
    }
  }

  /** What VS Code has stored as settings of the user or the machine. */
  settings(place: "User" | "Machine"): Record<string, unknown> {
    return JSON.parse(fs.readFileSync(path.join(this.folder, "ud", place, "settings.json"), "utf8"));
  }
}

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

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  server.close();
  return port;
}
