// VS Code as a user has it: code-server with the packaged extension, a home and a workspace of its own, and windows of it
// in headless Chromium. Knows no tests; what a window can do is in window.ts.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";

import { chromium, type Browser } from "playwright-core";

import { PATIENCE, until, Window } from "./window.ts";

export { until, type Window };

const HERE = import.meta.dirname;
export const ROOT = path.resolve(HERE, "../../..");
const SERVER = path.join(HERE, "node_modules/code-server/out/node/entry.js");
const VSIX = path.resolve(HERE, "../midfill.vsix");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

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

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  server.close();
  return port;
}
