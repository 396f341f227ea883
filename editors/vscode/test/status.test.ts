import assert from "node:assert/strict";
import { test } from "node:test";

import manifest from "../package.json";
import { look, menu } from "../src/status";

test("loading shows how far it is", () => {
  assert.equal(look({ state: "loading", progress: { percent: 40 } }).text, "$(loading~spin) midfill 40%");
  assert.equal(look({ state: "loading", progress: {} }).text, "$(loading~spin) midfill");
  assert.equal(look({ state: "ready", progress: { percent: 100 } }).text, "$(sparkle) midfill");
});

test("the tooltip says what, why, what to do and which model", () => {
  const shown = look({ state: "errored", detail: "no memory left", hint: "use a smaller model", model: "embedded" });
  assert.equal(shown.tooltip, "midfill: completion is not possible\nno memory left\nTo do: use a smaller model\nModel: embedded");
  assert.equal(shown.level, "error");
  assert.equal(look({ state: "off", detail: "off in markdown", hint: "" }).tooltip, "midfill: off\noff in markdown");
});

test("states look different from each other, and one of a newer server is shown by its name", () => {
  const states = ["loading", "ready", "busy", "stopped", "off", "warning", "errored", "missing"];
  assert.equal(new Set(states.map((state) => look({ state }).text)).size, states.length);
  assert.match(look({ state: "dreaming" }).tooltip, /dreaming/);
});

test("the menu offers what helps in this state, and only commands that exist", () => {
  const known = new Set(manifest.contributes.commands.map((each) => each.command));
  for (const state of ["missing", "failed", "ready", "off"]) {
    for (const { command } of menu({ state }, "python")) {
      assert.ok(known.has(command), command);
    }
  }
  const commands = (state: string, language?: string) => menu({ state }, language).map((each) => each.command);
  assert.equal(commands("missing")[0], "midfill.setUp");
  assert.equal(commands("failed")[0], "midfill.restartServer");
  assert.ok(commands("ready", "python").includes("midfill.toggleLanguage"));
  assert.ok(!commands("ready").includes("midfill.toggleLanguage"));
});
