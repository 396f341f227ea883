// Finds the server's program or, with the user's consent, makes an environment that holds it. Knows VS Code's dialogs;
// programs are looked for in locate.ts, the environment is made in environment.ts.

import { promises as fs } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

import { Environment, newEnough, pythonNames, runner } from "./environment";
import { named, onPath, type Places } from "./locate";

const MAKE = "Make the Environment";
const CHOOSE = "Choose a Program…";
const SET_UP = "Set Up…";
const UPDATE = "Update";
const NOT_NOW = "Not Now";
const ASKED = "midfill.asked";

export class Setup {
  private readonly windows = process.platform === "win32";

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly folder: string,
  ) {}

  /** The program, or undefined if there is none yet. Throws LocateError for a setting that cannot be used. */
  async find(): Promise<string | undefined> {
    const own = await this.environment();
    return (
      (await named("midfill.path", this.setting("path"))) ??
      (await onPath(["midfill"], this.places()))[0] ??
      (await own?.program())
    );
  }

  /** Once: say that there is no server yet, and offer to set it up. */
  async introduce(): Promise<string | undefined> {
    if (this.context.globalState.get<boolean>(ASKED)) {
      return undefined;
    }
    await this.context.globalState.update(ASKED, true);
    const text = "midfill completes code with a model on this machine. Its server is not installed here yet.";
    return (await vscode.window.showInformationMessage(text, SET_UP, NOT_NOW)) === SET_UP ? this.offer() : undefined;
  }

  /** If the extension's own environment holds the server of another version, offer to make it anew. */
  async offerUpdate(program: string): Promise<string | undefined> {
    const own = await this.environment();
    if (!own || program !== (await own.program()) || !(await own.outdated())) {
      return undefined;
    }
    const text = "The extension has been updated; the server in its environment is of another version.";
    return (await vscode.window.showInformationMessage(text, UPDATE, NOT_NOW)) === UPDATE ? this.make(own) : undefined;
  }

  /** Let the user decide how the server gets here. The program, or undefined if there is none afterwards. */
  async offer(): Promise<string | undefined> {
    const own = await this.environment();
    const detail = own
      ? `A Python environment of its own would be made in\n${own.folder}\n\npip downloads what midfill needs, which takes ` +
        "about 1.4 GB on disk, or 5 to 6 GB on Linux, where pip takes torch with CUDA unless the setting " +
        "midfill.pipArguments says otherwise. The embedded model comes with the extension. Deleting that folder undoes it all."
      : "This build of the extension brings no server. Install midfill as an application, for example with pipx.";
    const choices = own ? [MAKE, CHOOSE] : [CHOOSE];
    const answer = await vscode.window.showInformationMessage("Set up midfill?", { modal: true, detail }, ...choices);
    if (answer === CHOOSE) {
      return this.choose();
    }
    return answer === MAKE && own ? this.make(own) : undefined;
  }

  private async choose(): Promise<string | undefined> {
    const chosen = await vscode.window.showOpenDialog({ title: "The program midfill", canSelectMany: false });
    if (!chosen?.[0]) {
      return undefined;
    }
    const file = await named("midfill.path", chosen[0].fsPath);
    await vscode.workspace.getConfiguration("midfill").update("path", file, vscode.ConfigurationTarget.Global);
    return file;
  }

  private async make(own: Environment): Promise<string | undefined> {
    const run = runner(this.folder, (line) => this.log.info(line));
    const options = { location: vscode.ProgressLocation.Notification, title: "midfill: setting up", cancellable: true };
    return vscode.window.withProgress(options, async (progress, token) => {
      const abort = new AbortController();
      token.onCancellationRequested(() => abort.abort());
      try {
        const setting = await named("midfill.python", this.setting("python"));
        const python = await newEnough(setting ? [setting] : await onPath(pythonNames, this.places()), run);
        progress.report({ message: "pip downloads and installs; the log shows how far it is" });
        const more = vscode.workspace.getConfiguration("midfill").get<string[]>("pipArguments", []);
        return await own.make(python, more, run, abort.signal);
      } catch (error) {
        await own.remove();
        if (abort.signal.aborted) {
          return undefined;
        }
        throw error;
      }
    });
  }

  private async environment(): Promise<Environment | undefined> {
    const folder = this.context.asAbsolutePath("server");
    const files = await fs.readdir(folder).catch(() => [] as string[]);
    const wheel = files.find((name) => name.endsWith(".whl"));
    return wheel ? new Environment(path.join(this.folder, "environment"), path.join(folder, wheel), this.windows) : undefined;
  }

  private places(): Places {
    return {
      search: process.env.PATH ?? "",
      distrusted: (vscode.workspace.workspaceFolders ?? []).map((each) => each.uri.fsPath),
      windows: this.windows,
    };
  }

  private setting(name: string): string {
    return vscode.workspace.getConfiguration("midfill").get<string>(name, "");
  }
}
