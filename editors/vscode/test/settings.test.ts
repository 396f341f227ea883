import assert from "node:assert/strict";
import { test } from "node:test";

import manifest from "../package.json";
import { explicit, namesIn, withItem } from "../src/settings";

function section(values: Record<string, unknown>, inspected: Record<string, object>) {
  return { get: (name: string) => values[name], inspect: (name: string) => inspected[name] };
}

test("only what is set somewhere is told", () => {
  const settings = section(
    { enabled: true, maxLines: 3, popup: false },
    {
      enabled: { key: "midfill.enabled", defaultValue: true, defaultLanguageValue: true },
      maxLines: { defaultValue: 12, workspaceValue: 3 },
      popup: { defaultValue: false, globalLanguageValue: false },
    },
  );
  assert.deepEqual(explicit(["enabled", "maxLines", "popup", "unknown"], settings), { maxLines: 3, popup: false });
});

test("the extension's own settings are not the server's", () => {
  const names = namesIn(manifest);
  assert.ok(names.includes("enabled") && names.includes("model"));
  assert.ok(!names.includes("path") && !names.includes("pipArguments"));
});

test("a workspace chooses neither programs nor models", () => {
  const all: Record<string, { scope?: string }> = Object.assign(
    {},
    ...manifest.contributes.configuration.map((each) => each.properties),
  );
  for (const name of ["path", "python", "pipArguments", "model"]) {
    assert.equal(all[`midfill.${name}`].scope, "machine", name);
  }
});

test("an item is in a list once, or not at all", () => {
  assert.deepEqual(withItem(["a", "b"], "b", true), ["a", "b"]);
  assert.deepEqual(withItem(["a", "b"], "a", false), ["b"]);
  assert.deepEqual(withItem([], "a", true), ["a"]);
});
