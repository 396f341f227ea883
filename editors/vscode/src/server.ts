// The language server of this window: started, stopped, asked. Knows vscode-languageclient and the server's own methods;
// not how the program was found.

import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  State,
  type ConfigurationParams,
  type ErrorHandler,
  type Middleware,
  type Range,
} from "vscode-languageclient/node";

import { explicit } from "./settings";
import type { Shown } from "./shown";
import type { Status } from "./status";

/** Commands of the server's code actions. They are done by `midfill/edit` and `midfill/fill` here, with a preview. */
const ACTIONS: readonly string[] = ["midfill.editSelection", "midfill.fillSelection"];

/** What a code action is to rewrite; `instruction`: one that stands in the document. */
export interface Where {
  readonly textDocument: { readonly uri: string };
  readonly range: Range;
  readonly version: number;
  readonly instruction?: string;
}

const SELECTOR = ["file", "untitled", "vscode-notebook-cell"].map((scheme) => ({ scheme }));

/** Crashes within CRASH_MS after which the server is left alone until the user restarts it. */
const CRASHES = 3;
const CRASH_MS = 5 * 60_000;

export class Server {
  private client: LanguageClient | undefined;
  private before: Promise<void> = Promise.resolve();
  private readonly changed = new vscode.EventEmitter<Status>();
  /** Every `midfill/status`, and "failed" when the server does not run. */
  readonly onStatus = this.changed.event;
  private readonly told = new vscode.EventEmitter<void>();
  /** The server has asked for settings and has them now. */
  readonly onSettings = this.told.event;
  private readonly drafted = new vscode.EventEmitter<{ token: string; text: string }>();
  /** Every draft of an edit that is under way. */
  readonly onEditDraft = this.drafted.event;

  private readonly acted = new vscode.EventEmitter<{ fill: boolean; where?: Where }>();
  /** A code action for an edit has been chosen. */
  readonly onEditAction = this.acted.event;

  /** Whether what is asked for next was asked for by typing, although VS Code says by command. */
  private repeating = false;
  /** What the server had nothing for, last. */
  private unanswered: { document: vscode.TextDocument; version: number; position: vscode.Position } | undefined;

  /** `folder` is the server's working directory; `names` are those of its settings. */
  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly folder: string,
    private readonly names: readonly string[],
    private readonly shown: Shown,
  ) {}

  get running(): boolean {
    return this.client?.state === State.Running;
  }

  /** Start `program`; a server that runs, or is about to, is stopped first. Rejects with what went wrong. */
  start(program: string): Promise<void> {
    const started = this.before.then(() => this.startNow(program));
    this.before = started.catch(() => undefined);
    return started;
  }

  private async startNow(program: string): Promise<void> {
    await this.stop();
    this.log.info(`starting ${program} lsp`);
    const client = new LanguageClient(
      "midfill",
      "midfill",
      { command: program, args: ["lsp"], options: { cwd: this.folder } },
      {
        documentSelector: SELECTOR,
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationOptions: () => this.settings(undefined),
        middleware: this.middleware(),
        errorHandler: this.errorHandler(),
        initializationFailedHandler: () => false,
      },
    );
    this.client = client;
    client.onNotification("midfill/status", (status: Status) => this.changed.fire(status));
    client.onNotification("midfill/editDraft", (draft: { token: string; text: string }) => this.drafted.fire(draft));
    this.shown.follow((method, params) => client.sendNotification(method, params));
    this.changed.fire({ state: "starting" });
    try {
      await client.start();
    } catch (error) {
      this.changed.fire({ state: "failed", detail: String(error) });
      throw error;
    }
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client && (client.state === State.Running || client.state === State.Starting)) {
      await client.stop().catch((error: unknown) => this.log.warn(`stopping: ${String(error)}`));
    }
    await client?.dispose().catch(() => undefined);
  }

  /** Ask the server. Rejects with its sentence, or with one that says that it does not run. */
  async ask<T>(method: string, params: object, token?: vscode.CancellationToken): Promise<T> {
    if (!this.client || !this.running) {
      throw new Error("midfill does not run. Use the command “midfill: Restart”, or see its log.");
    }
    // An absent token must not be passed: it would count as another parameter.
    return token ? this.client.sendRequest<T>(method, params, token) : this.client.sendRequest<T>(method, params);
  }

  /** Have ghost text asked for once more where there was none, unless the user has gone on: the model is there now. */
  again(): void {
    const [editor, asked] = [vscode.window.activeTextEditor, this.unanswered];
    const there = editor && asked?.document === editor.document && asked.version === editor.document.version;
    if (there && asked.position.isEqual(editor.selection.active)) {
      this.repeating = true;
      void vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    }
  }

  /** Run a command of the server. */
  async execute<T>(command: string, ...args: unknown[]): Promise<T> {
    return this.ask<T>("workspace/executeCommand", { command, arguments: args });
  }

  /** Positions and edits between VS Code and the protocol. */
  get toProtocol() {
    return this.client!.code2ProtocolConverter;
  }

  get fromProtocol() {
    return this.client!.protocol2CodeConverter;
  }

  private settings(uri: vscode.Uri | undefined): Record<string, unknown> {
    const document = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri?.toString());
    const scope = document ?? uri;
    return explicit(this.names, vscode.workspace.getConfiguration("midfill", scope));
  }

  private middleware(): Middleware {
    return {
      executeCommand: (command, args, next) => {
        if (!ACTIONS.includes(command)) {
          return next(command, args);
        }
        this.acted.fire({ fill: command === "midfill.fillSelection", where: args[0] as Where | undefined });
        return undefined;
      },
      workspace: {
        configuration: (params: ConfigurationParams) => {
          setImmediate(() => this.told.fire()); // what is asked then comes after this answer
          return params.items.map(({ section, scopeUri }) =>
            section === "midfill" ? this.settings(scopeUri ? vscode.Uri.parse(scopeUri) : undefined) : null,
          );
        },
      },
      provideInlineCompletionItems: async (document, position, context, token, next) => {
        const { version } = document;
        const typed = { ...context, triggerKind: vscode.InlineCompletionTriggerKind.Automatic };
        const asked = next(document, position, this.repeating ? typed : context, token);
        this.repeating = false;
        const items = await asked;
        const list = Array.isArray(items) ? items : (items?.items ?? []);
        if (!token.isCancellationRequested) {
          this.unanswered = list.length ? undefined : { document, version, position };
          this.shown.offered(document, position, list);
        }
        return items;
      },
    };
  }

  private errorHandler(): ErrorHandler {
    let crashes: number[] = [];
    return {
      error: (error) => {
        this.log.warn(`connection: ${error.message}`);
        return { action: ErrorAction.Continue, handled: true };
      },
      closed: () => {
        const now = Date.now();
        crashes = [...crashes.filter((then) => now - then < CRASH_MS), now];
        if (crashes.length < CRASHES) {
          this.log.warn("the server has ended by itself and is started again");
          this.changed.fire({ state: "starting", detail: "the server had ended by itself" });
          return { action: CloseAction.Restart, handled: true };
        }
        const detail = `the server has ended by itself ${CRASHES} times within five minutes`;
        this.changed.fire({ state: "failed", detail, hint: "see the log, then restart" });
        return { action: CloseAction.DoNotRestart, message: `midfill: ${detail}. See its log.` };
      },
    };
  }
}
