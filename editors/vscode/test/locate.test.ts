import assert from "node:assert/strict";
import { promises as fs } from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { LocateError, isWithin, named, onPath } from "../src/locate";

let root: string;

beforeEach(async () => {
  root = await fs.realpath(await fs.mkdtemp(path.join(os.tmpdir(), "midfill-locate-")));
});
afterEach(() => fs.rm(root, { recursive: true }));

async function program(...parts: string[]): Promise<string> {
  const file = path.join(root, ...parts);
  await fs.mkdir(path.dirname(file), { recursive: true });
  await fs.writeFile(file, "#!/bin/sh\n", { mode: 0o755 });
  return file;
}

const places = (folders: string[], distrusted: string[] = []) => ({
  search: folders.join(path.delimiter),
  distrusted,
  windows: false,
});

test("the first on the path, in the order of names and folders", async () => {
  const [late, early, other] = [await program("b", "midfill"), await program("a", "midfill"), await program("b", "other")];
  const found = await onPath(["midfill", "other"], places([path.join(root, "a"), path.join(root, "b")]));
  assert.deepEqual(found, [early, late, other]);
});

test("nothing of the workspace is started, whatever way leads there", async () => {
  await program("workspace", ".venv", "bin", "midfill");
  await fs.symlink(path.join(root, "workspace", ".venv", "bin"), path.join(root, "link"));
  const workspace = path.join(root, "workspace");
  const ways = [path.join(workspace, ".venv", "bin"), path.join(root, "link"), "relative/bin", ".", ""];
  assert.deepEqual(await onPath(["midfill"], places(ways, [workspace])), []);
  assert.equal((await onPath(["midfill"], places(ways, []))).length, 2);
});

test("files that cannot be started and folders are no programs", async () => {
  const file = await program("a", "midfill");
  await fs.chmod(file, 0o644);
  await fs.mkdir(path.join(root, "b", "midfill"), { recursive: true });
  assert.deepEqual(await onPath(["midfill"], places([path.join(root, "a"), path.join(root, "b")])), []);
});

test("a setting names a program by an absolute path", async () => {
  const file = await program("bin", "midfill");
  assert.equal(await named("midfill.path", ` ${file} `), file);
  assert.equal(await named("midfill.path", "  "), undefined);
  await assert.rejects(named("midfill.path", "bin/midfill"), (error) => error instanceof LocateError && /absolute/.test(error.message));
  await assert.rejects(named("midfill.path", path.join(root, "none")), /midfill\.path names .*none/);
});

test("a folder lies within itself and within those above it, not within its neighbours", () => {
  assert.ok(isWithin("/a/b", ["/a"]));
  assert.ok(isWithin("/a", ["/a"]));
  assert.ok(isWithin("/a/..b", ["/a"]));
  assert.ok(!isWithin("/ab", ["/a"]));
  assert.ok(!isWithin("/", ["/a"]));
});
