// Real engine processes with the embedded model behind real windows: two windows share one, it comes back when it was
// killed, and what it cannot do is said.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { Editor, until, type Window } from "./editor.ts";

const APP = "def total(prices):\n    result = 0\n    for price in prices:\n        \n    return result\n";

const LATE = "function total(prices) {\n  let result = 0;\n  for (const price of prices) {\n";

let editor: Editor;
let first: Window;
let second: Window;

before(async () => {
  editor = await Editor.start({
    files: { "app.py": APP, "other.py": APP, "late.js": LATE },
    settings: {
      "midfill.minConfidence": 0,
      "midfill.deadlineMs": 5000,
      "[javascript]": { "midfill.deadlineMs": 1000 }, // less than loading the model takes
    },
  });
  first = await editor.window("app.py");
});
afterEach((context) => first.picture(context));
after(() => editor?.stop());

/** The engine's process, from its own status; 0 while there is none. */
function engine(): number {
  return JSON.parse(editor.midfill("engine", "status", "--json")).pid;
}

/** Type into the body of the loop and ask for a completion, whatever it is. */
async function complete(window: Window, typed: string): Promise<string> {
  await window.press("Control+Home", "ArrowDown", "ArrowDown", "ArrowDown", "End");
  await window.type(typed);
  await window.command("midfill: Trigger Completion");
  await until("ghost text", async () => (await window.ghostText()) !== "");
  return window.ghostText();
}

test("two windows, one engine", async () => {
  second = await editor.window("other.py");
  assert.notEqual(await complete(first, "res"), "");
  const one = engine();
  assert.ok(one);
  assert.notEqual(await complete(second, "res"), "");
  assert.equal(engine(), one);
});

test("an engine that was killed is replaced, and completion goes on", async () => {
  const killed = engine();
  assert.ok(killed);
  await first.press("Escape");
  process.kill(killed, "SIGKILL");
  await until("it is gone", () => engine() !== killed);
  assert.notEqual(await complete(first, "ult = pri"), "");
  const next = engine();
  assert.ok(next !== 0 && next !== killed);
  await first.state("ready");
});

test("restarted by command: another engine, and completion goes on", async () => {
  const before = engine();
  await first.press("Escape");
  await first.command("midfill: Restart");
  await until("another engine", () => ![0, before].includes(engine()));
  await first.state("ready");
  await first.focused();
  assert.notEqual(await complete(first, "\nresult = pri"), "");
});

test("who has typed while the model was not there need not press another key", async () => {
  const window = await editor.window("late.js");
  await window.press("Control+End");
  await until("the engine has ended", () => {
    editor.midfill("engine", "stop");
    return engine() === 0;
  });
  await window.type("    result += pri");
  await until("ghost text", async () => (await window.ghostText()) !== "");
  await window.page.close();
});

test("another model is selected, and the first one again", async () => {
  const selected = () => editor.settings("Machine")["midfill.model"];
  await first.press("Escape");
  await first.command("midfill: Select Model");
  await first.pick("ollama");
  await until("the setting is written", () => selected() === "ollama");
  await first.state(/Model: ollama/);
  await first.command("midfill: Select Model");
  await first.pick("Chosen for all editors");
  await until("the setting is gone", () => selected() === undefined);
  await first.state(/ready[^]*Model: embedded/);
  await first.focused();
  assert.notEqual(await complete(first, "\nresult = pri"), "");
});

test("the embedded model follows no instructions, and says which can; filling is offered", async () => {
  await first.press("Escape", "Control+Home", "ArrowDown", "Shift+End", "Control+i");
  await first.answer("start at one");
  await first.message(/embedded/);
  await first.button("Fill Instead");
  await until("a difference, or that there is none", async () =>
    (await first.page.locator(".monaco-diff-editor").count()) > 0 || (await first.notices()).some((each) => /leave|nothing/.test(each)),
  );
});
