// From an installed .vsix to a server that is ready, with the user's consent and in the extension's own environment. The
// packages that midfill needs are lent by the repository's environment, so that nothing is downloaded.

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as path from "node:path";
import { after, afterEach, before, test } from "node:test";

import { Editor, ROOT, until, type Window } from "./editor.ts";

let editor: Editor;
let window: Window;
let storage: string;

before(async () => {
  editor = await Editor.start({
    files: { "app.py": "import os\n", ".venv/bin/midfill": "#!/bin/sh\ntouch '../stolen'\n" },
    machine: { "midfill.pipArguments": ["--no-deps"], "midfill.python": lender() },
    program: "",
  });
  fs.chmodSync(path.join(editor.workspace, ".venv/bin/midfill"), 0o755);
  storage = path.join(editor.folder, "ud/User/globalStorage/midfill.midfill/environment");
  window = await editor.window("app.py", "not set up yet");
});
afterEach((context) => window.picture(context));
after(() => editor?.stop());

/** A Python whose environments also see the packages of the repository's. */
function lender(): string {
  const python = path.join(ROOT, ".venv/bin/python");
  const file = path.join(fs.mkdtempSync("/tmp/midfill-python-"), "python");
  const lend = `for site in "$4"/lib/python*/site-packages; do echo '${ROOT}/.venv/lib/'*/site-packages > "$site/lent.pth"; done`;
  fs.writeFileSync(file, `#!/bin/sh\n'${python}' "$@" || exit\n[ "$3" = venv ] && ${lend}\nexit 0\n`, { mode: 0o755 });
  return file;
}

test("it is offered once, and nothing is made without consent", async () => {
  await window.message("not installed here yet");
  await window.button("Set Up…");
  await window.page.locator(".monaco-dialog-box", { hasText: storage }).waitFor();
  await window.button("Cancel");
  await window.state("not set up yet");
  assert.equal(fs.existsSync(storage), false);
});

test("made with consent, it completes; nothing of the workspace was started", async () => {
  await window.command("midfill: Set Up the Server");
  await window.button("Make the Environment");
  await window.state("ready");
  assert.ok(fs.existsSync(path.join(storage, "bin/midfill")));
  assert.equal(fs.existsSync(path.join(editor.workspace, ".venv/stolen")), false);
  assert.equal(fs.existsSync(path.join(editor.folder, "stolen")), false);
});

test("a server that ends by itself is started again", async () => {
  const pids = () =>
    fs.readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && commandLine(pid).startsWith(`${storage}/bin/`) && / lsp$/.test(commandLine(pid)));
  const [before] = pids();
  assert.ok(before);
  process.kill(Number(before), "SIGKILL");
  await until("another server", () => pids().some((pid) => pid !== before));
  await window.state("ready");
});

function commandLine(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").replace(/\0/g, " ").trim();
  } catch {
    return "";
  }
}
