// midfill in VS Code: finds and starts the server, binds the commands, shows the state. No completion logic, no
// telemetry; ghost text and its keys are VS Code's own. Reads top to bottom: activate, then what the commands do.

import { promises as fs } from "node:fs";
import * as vscode from "vscode";

import { Edits } from "./edits";
import { runner } from "./environment";
import { Pages } from "./pages";
import { Server } from "./server";
import { namesIn, withItem } from "./settings";
import { Setup } from "./setup";
import { Shown } from "./shown";
import { look, menu, type Status } from "./status";
import { statisticsPage, whyPage, type Statistics, type Why } from "./texts";

let extension: Extension | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const folder = context.globalStorageUri.fsPath;
  await fs.mkdir(folder, { recursive: true });
  extension = new Extension(context, folder);
  void extension.begin();
}

export async function deactivate(): Promise<void> {
  await extension?.end();
}

class Extension {
  private readonly log = vscode.window.createOutputChannel("midfill", { log: true });
  private readonly item = vscode.window.createStatusBarItem("midfill.status", vscode.StatusBarAlignment.Right, 100);
  private readonly pages = new Pages();
  private readonly shown = new Shown();
  private readonly setup: Setup;
  private readonly server: Server;
  private readonly edits: Edits;
  private status: Status = { state: "starting" };
  private program = "";
  private toggled: Promise<void> = Promise.resolve();

  constructor(
    context: vscode.ExtensionContext,
    private readonly folder: string,
  ) {
    this.setup = new Setup(context, this.log, folder);
    this.server = new Server(this.log, folder, namesIn(context.extension.packageJSON), this.shown);
    this.edits = new Edits(this.server, this.log);
    this.item.name = "midfill";
    this.item.command = "midfill.menu";
    this.item.show();
    const commands: Record<string, () => unknown> = {
      "midfill.menu": () => this.menu(),
      "midfill.complete": () => vscode.commands.executeCommand("editor.action.inlineSuggest.trigger"),
      "midfill.toggleEverywhere": () => this.toggle(undefined),
      "midfill.toggleLanguage": () => this.toggle(vscode.window.activeTextEditor?.document.languageId),
      "midfill.explain": () => this.explain(),
      "midfill.inlineEdit": () => this.edits.edit(),
      "midfill.inlineFill": () => this.edits.fill(),
      "midfill.acceptEdit": () => this.edits.accept(),
      "midfill.retryEdit": () => this.edits.retry(),
      "midfill.discardEdit": () => this.edits.discard(),
      "midfill.selectModel": () => this.selectModel(),
      "midfill.restartServer": () => this.restart(),
      "midfill.showLog": () => this.log.show(),
      "midfill.showStatistics": () => this.showStatistics(),
      "midfill.setUp": async () => this.start(await this.setup.offer()),
    };
    context.subscriptions.push(
      this.log,
      this.item,
      this.pages,
      this.shown,
      this.edits,
      ...Object.entries(commands).map(([name, command]) => vscode.commands.registerCommand(name, () => this.told(command))),
      this.server.onStatus((status) => this.show(status)),
      this.server.onSettings(() => this.refresh()),
      vscode.window.onDidChangeActiveTextEditor(() => this.refresh()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("midfill.path")) {
          void this.begin();
        }
      }),
    );
  }

  /** Find the server and start it, or say that there is none. */
  async begin(): Promise<void> {
    await this.told(async () => {
      const program = await this.setup.find();
      if (program) {
        await this.start(program);
        await this.start(await this.setup.offerUpdate(program));
        return;
      }
      await this.server.stop();
      this.show({ state: "missing", hint: "click to set it up" });
      await this.start(await this.setup.introduce());
    });
  }

  async end(): Promise<void> {
    await this.server.stop();
  }

  private async start(program: string | undefined): Promise<void> {
    if (program) {
      this.program = program;
      await this.server.start(program);
      await this.refresh();
    }
  }

  /** Do it; what goes wrong is told in one sentence. */
  private async told(command: () => unknown): Promise<void> {
    try {
      await command();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.log.error(message);
      if (!this.server.running) {
        this.show({ state: "failed", detail: message });
      }
      const answer = await vscode.window.showErrorMessage(`midfill: ${message}`, "Show Log");
      if (answer) {
        this.log.show();
      }
    }
  }

  // --- state

  private show(status: Status): void {
    if (status.state === "ready" && ["starting", "loading"].includes(this.status.state)) {
      this.server.again();
    }
    this.status = status;
    const { text, tooltip, level } = look(status);
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.accessibilityInformation = { label: tooltip, role: "button" };
    this.item.backgroundColor =
      level === "plain" ? undefined : new vscode.ThemeColor(`statusBarItem.${level}Background`);
    void vscode.commands.executeCommand("setContext", "midfill.running", this.server.running);
  }

  /** The state as it is for the file in front. */
  private async refresh(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (document && this.server.running) {
      const params = { textDocument: { uri: this.server.toProtocol.asUri(document.uri) } };
      this.show(await this.server.ask<Status>("midfill/status", params));
    }
  }

  private async menu(): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    const title = look(this.status).tooltip.split("\n").slice(0, 2).join(": ");
    const chosen = await vscode.window.showQuickPick(menu(this.status, language), { title });
    if (chosen) {
      await vscode.commands.executeCommand(chosen.command);
    }
  }

  // --- commands

  /** One after the other: each needs what the one before has written. */
  private toggle(language: string | undefined): Promise<void> {
    const toggled = this.toggled.then(() => this.toggleNow(language));
    this.toggled = toggled.catch(() => undefined);
    return toggled;
  }

  /** On or off, everywhere or for one language, in the user's settings. The server knows what it is now. */
  private async toggleNow(language: string | undefined): Promise<void> {
    const { enabled } = await this.server.execute<{ enabled: boolean }>("midfill.toggle", ...(language ? [language] : []));
    const settings = vscode.workspace.getConfiguration("midfill");
    const [name, value] = language
      ? ["disabledLanguages", withItem(settings.get<string[]>("disabledLanguages", []), language, !enabled)]
      : ["enabled", enabled];
    const inspected = settings.inspect(name);
    const target =
      inspected?.workspaceValue === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
    await settings.update(name, value, target);
    const what = language ?? "all languages";
    void vscode.window.setStatusBarMessage(`midfill: ${enabled ? "on" : "off"} for ${what}`, 5000);
  }

  private async explain(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const where = editor && {
      textDocument: { uri: this.server.toProtocol.asUri(editor.document.uri) },
      position: this.server.toProtocol.asPosition(editor.selection.active),
    };
    const why = await this.server.ask<Why>("midfill/why", where ?? {});
    if (await vscode.window.showInformationMessage(`midfill: ${why.sentence}`, "Details")) {
      await this.pages.show("Why", whyPage(why));
    }
  }

  private async selectModel(): Promise<void> {
    const models = JSON.parse(await this.midfill("model", "list", "--json")) as { name: string; state: string }[];
    const settings = vscode.workspace.getConfiguration("midfill");
    const current = settings.get<string>("model", "");
    const own = { label: "", name: "", description: "as chosen with `midfill model use`" };
    const items = [own, ...models.map(({ name, state }) => ({ label: name, name, description: state }))].map((each) => ({
      ...each,
      label: `${each.name === current ? "$(check) " : ""}${each.label || "Chosen for all editors"}`,
    }));
    const chosen = await vscode.window.showQuickPick(items, { title: "midfill: model that completes", matchOnDescription: true });
    if (chosen) {
      await settings.update("model", chosen.name || undefined, vscode.ConfigurationTarget.Global);
    }
  }

  private async showStatistics(): Promise<void> {
    const statistics = JSON.parse(await this.midfill("stats", "--json")) as Statistics;
    await this.pages.show("Statistics", statisticsPage(statistics));
  }

  /** End the engine of all windows and this window's server, and start anew. */
  private async restart(): Promise<void> {
    if (this.server.running) {
      await this.server.execute("midfill.restart").catch((error: unknown) => this.log.warn(String(error)));
    }
    await this.begin();
  }

  private midfill(...args: string[]): Promise<string> {
    if (!this.program) {
      throw new Error("the server is not set up yet. Use the command “midfill: Set Up the Server”.");
    }
    return runner(this.folder)(this.program, args);
  }
}
