// Ghost text in a real window, with answers of the scripted engine.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { Editor, until, type Window } from "./editor.ts";

const SCRIPT = [
  { after: "total = ", fill: "first + second", confidence: 0.9 },
  { after: "both = ", fill: "first + second", confidence: 0.9 },
  { after: "each in rows:", fill: "\n    print(each)", confidence: 0.9 },
  { after: "fail = ", error: { code: "model", message: "out of memory", hint: "close something" } },
];

let editor: Editor;
let window: Window;

before(async () => {
  editor = await Editor.start({ script: SCRIPT, files: { "app.py": "", "notes.md": "" }, settings: { "midfill.debounceMs": 0 } });
  window = await editor.window("app.py");
});
afterEach((context) => window.picture(context));
after(() => editor?.stop());

async function cleared(): Promise<void> {
  await window.press("Escape", "Control+a", "Delete");
}

test("typed, shown, accepted with Tab", async () => {
  await window.type("total = ");
  await window.ghost("first + second");
  await window.press("Tab");
  await window.saved("total = first + second");
});

test("several lines", async () => {
  await cleared();
  await window.type("for each in rows:");
  await window.ghost("\n    print(each)");
  await window.press("Tab");
  await window.saved("for each in rows:\n    print(each)");
});

test("accepted word by word, typed through, rejected", async () => {
  await cleared();
  await window.type("both = ");
  await window.ghost("first + second");
  await window.press("Control+ArrowRight");
  await window.ghost(" + second");
  await window.type(" +");
  await window.ghost(" second");
  await window.press("Escape");
  await window.ghost("");
  await window.saved("both = first +");
});

test("what was shown and accepted is counted", () => {
  const { total } = JSON.parse(editor.midfill("stats", "--json"));
  assert.equal(total.shown, 3);
  assert.equal(total.accepted, 2);
  assert.equal(total.partial, 1);
  assert.equal(total.chars, "first + second".length + "\n    print(each)".length + "first".length);
});

test("statistics and log have a page, and the status bar a menu", async () => {
  await window.command("midfill: Show Statistics");
  await window.line("| all |  | 3 | 2 (67 %) | 1 |");
  await window.command("View: Close Editor");
  await window.item.click();
  await window.pick("Show the log");
  await window.line("midfill lsp");
  await window.press("Control+j");
  await window.focused();
});

const disabled = () => (editor.settings("User")["midfill.disabledLanguages"] ?? []) as string[];

test("off and on, for a language and everywhere", async () => {
  await cleared();
  await window.command("midfill: Toggle Completions for This Language");
  await window.type("total = ");
  await window.state("off");
  assert.equal(await window.ghostText(), "");
  await until("the setting is written", () => disabled().includes("python"));
  await window.command("midfill: Toggle Completions for This Language");
  await window.state("ready");
  await until("the setting is written", () => !disabled().includes("python"));
  await cleared();
  await window.type("total = ");
  await window.ghost("first + second");
  await window.command("midfill: Toggle Completions Everywhere");
  await window.state(/midfill: off/);
  await until("the setting is written", () => editor.settings("User")["midfill.enabled"] === false);
  await window.command("midfill: Toggle Completions Everywhere");
  await window.state("ready");
});

test("a failure is in the status bar, and why says so", async () => {
  await cleared();
  await window.type("fail = ");
  await window.state(/out of memory[^]*close something/);
  await window.command("midfill: Why Is There (No) Completion Here?");
  await window.message("out of memory");
});
