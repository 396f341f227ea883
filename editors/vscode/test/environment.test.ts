import assert from "node:assert/strict";
import { promises as fs } from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { Environment, newEnough, runner, type Run } from "../src/environment";

let root: string;

beforeEach(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), "midfill-environment-"));
});
afterEach(() => fs.rm(root, { recursive: true }));

const signal = new AbortController().signal;

/** Makes the files that venv and pip would make, and keeps what was run. */
function installer(ran: string[][], fail = ""): Run {
  return async (program, args) => {
    ran.push([program, ...args]);
    if (fail && args.includes(fail)) {
      throw new Error(`no ${fail} here`);
    }
    if (args.includes("venv")) {
      await fs.mkdir(path.join(args.at(-1)!, "bin"), { recursive: true });
    } else if (args.includes("install")) {
      await fs.writeFile(path.join(path.dirname(program), "midfill"), "#!/bin/sh\n", { mode: 0o755 });
    }
    return "";
  };
}

test("made in isolation, and there once it is finished", async () => {
  const environment = new Environment(path.join(root, "env"), "/x/midfill-1.whl", false);
  assert.equal(await environment.program(), undefined);
  const ran: string[][] = [];
  const program = await environment.make("/usr/bin/python3", ["--index-url", "x"], installer(ran), signal);
  assert.equal(await environment.program(), program);
  assert.equal(await environment.outdated(), false);
  assert.deepEqual(ran[0], ["/usr/bin/python3", "-I", "-m", "venv", path.join(root, "env")]);
  assert.deepEqual(ran[1].slice(-3), ["--index-url", "x", "/x/midfill-1.whl"]);
  assert.ok(ran.slice(0, 2).every((each) => each[1] === "-I"));
});

test("what was left half-made is no environment, and the next try starts from nothing", async () => {
  const environment = new Environment(path.join(root, "env"), "/x/midfill-1.whl", false);
  await assert.rejects(environment.make("/p", [], installer([], "--version"), signal), /no --version here/);
  assert.equal(await environment.program(), undefined);
  await fs.writeFile(path.join(root, "env", "rest"), "");
  await environment.make("/p", [], installer([]), signal);
  await assert.rejects(fs.access(path.join(root, "env", "rest")));
});

test("another wheel makes it outdated", async () => {
  await new Environment(path.join(root, "env"), "/x/midfill-1.whl", false).make("/p", [], installer([]), signal);
  const next = new Environment(path.join(root, "env"), "/y/midfill-2.whl", false);
  assert.ok(await next.program());
  assert.equal(await next.outdated(), true);
});

test("the first Python that is new enough, and what was found where none is", async () => {
  const versions: Record<string, string> = { "/a": "3 9", "/b": "", "/c": "3 11", "/d": "3 14" };
  const run: Run = async (program) => versions[program] || Promise.reject(new Error("broken"));
  assert.equal(await newEnough(["/a", "/b", "/c", "/d"], run), "/c");
  await assert.rejects(newEnough(["/a", "/b"], run), /3\.11 or newer and found only \/a \(3\.9\), \/b\./);
  await assert.rejects(newEnough([], run), /found none/);
});

test("a program runs in the folder given; its last words are the error", async () => {
  const run = runner(root);
  assert.equal((await run(process.execPath, ["-p", "process.cwd()"])).trim(), await fs.realpath(root));
  await assert.rejects(run(process.execPath, ["-e", "console.error('first\\nlast'); process.exit(3)"]), /^Error: last$/);
  const abort = new AbortController();
  const running = run(process.execPath, ["-e", "setInterval(() => {}, 1000)"], abort.signal);
  abort.abort();
  await assert.rejects(running, { name: "AbortError" });
});
