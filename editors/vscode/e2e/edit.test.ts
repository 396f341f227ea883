// Inline edits in a real window: the difference, accept, retry, discard, and a document that changes meanwhile. With
// answers of the scripted engine.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { Editor, until, type Window } from "./editor.ts";

const START = "# sums\ndef add(a, b):\n    return a + b\n# texts\ndef low(s):\n    return s.lower()\n# numbers\ndef neg(n):\n    return -n\n# say the type\ndef up(s):\n    return s\n";
const ADD = ["def add(a, b):", "def add(a: int, b: int) -> int:"] as const;
const LOW = ["def low(s):", "def low(s: str) -> str:"] as const;

const SCRIPT = [
  { after: "# sums\n", fill: ADD[1] },
  { after: "# texts\n", fill: LOW[1], drafts: ["def low(s: ░░░):", "def low(s: str) -> ░░░:"], held: true },
  { after: "# numbers\n", fill: "def neg(n: int) -> int:", held: true },
  { after: "# say the type\n", fill: "def up(s: str):" },
  { after: "    return ", fill: "sum((a, b))" },
];

let editor: Editor;
let window: Window;
let text = START;

before(async () => {
  editor = await Editor.start({ script: SCRIPT, files: { "app.py": START } });
  window = await editor.window("app.py");
});
afterEach((context) => window.picture(context));
after(() => editor?.stop());

/** Select a line and say what to do with it. */
async function ask(line: number, instruction: string): Promise<void> {
  await window.press("Control+Home", ...Array(line - 1).fill("ArrowDown"), "Shift+End", "Control+i");
  const before = editor.asked().length;
  await window.answer(instruction);
  await until("the engine is asked", () => editor.asked().length > before);
}

test("discarded with Escape: the document is as it was", async () => {
  await ask(2, "add types");
  await window.proposed(ADD[1]);
  await window.saved(text);
  await window.decide("Escape");
  await window.saved(text);
});

test("accepted with Ctrl+Enter, in one step that one undo takes back", async () => {
  await ask(2, "add types");
  await window.proposed(ADD[1]);
  await window.decide("Control+Enter");
  await window.saved(text.replace(...ADD));
  await window.press("Control+z");
  await window.shows(text);
  await window.press("Control+y");
  text = text.replace(...ADD);
  await window.shows(text);
});

test("drafts show in the difference, retry asks with another seed", async () => {
  await ask(5, "add types");
  await window.proposed("def low(s: str) -> ░░░:");
  editor.release();
  await window.proposed(LOW[1]);
  await window.command("midfill: Retry Edit");
  await window.proposed("def low(s: str) -> ░░░:");
  editor.release();
  await window.proposed(LOW[1]);
  assert.deepEqual(editor.asked().filter((each) => each.instruction).slice(-2).map((each) => each.seed), [0, 1]);
  await window.decide("Control+Enter");
  text = text.replace(...LOW);
  await window.saved(text);
});

test("an edit of what has changed meanwhile is not applied", async () => {
  await ask(8, "add types");
  await window.press("Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight");
  await window.type("x");
  text = text.replace("def neg", "def xneg");
  await window.saved(text);
  editor.release();
  await window.message("changed meanwhile");
  await window.saved(text);
});

test("an edit moves with its selection", async () => {
  await ask(8, "add types");
  await window.press("Control+Home");
  await window.type("#");
  await window.saved(`#${text}`);
  editor.release();
  await window.proposed("def neg(n: int) -> int:");
  await window.decide("Control+Enter");
  text = `#${text.replace("def xneg(n):", "def neg(n: int) -> int:")}`;
  await window.saved(text);
});

test("the selection is filled again", async () => {
  await window.press("Control+Home", "ArrowDown", "ArrowDown", "End", ...Array("a + b".length).fill("Shift+ArrowLeft"));
  await window.command("midfill: Fill Selection");
  await window.proposed("    return sum((a, b))");
  await window.decide("Control+Enter");
  text = text.replace("a + b", "sum((a, b))");
  await window.saved(text);
});

test("code actions show what they would do first, with the instruction of the comment above, or one asked for", async () => {
  const last = ["Control+End", "ArrowUp", "End", "Shift+ArrowLeft"];
  await window.press(...last);
  await window.action("midfill: fill the selection anew");
  await window.proposed("    return sum((a, b))");
  await window.decide("Escape");
  await window.saved(text);

  await window.press(...last);
  await window.action("midfill: edit the selection as a comment in front of it says");
  await window.answer("add up");
  await window.proposed("    return sum((a, b))");
  assert.equal(editor.asked().at(-1)?.instruction, "add up");
  await window.decide("Escape");
  await window.saved(text);

  await window.press("Control+End", "ArrowUp", "ArrowUp", "Home", "Shift+End");
  await window.action("midfill: edit the selection: say the type");
  await window.proposed("def up(s: str):");
  assert.equal(editor.asked().at(-1)?.instruction, "say the type");
  await window.decide("Control+Enter");
  text = text.replace("def up(s):", "def up(s: str):");
  await window.saved(text);
});
