// Inline edits: ask for one, see it come in a diff, accept, retry or discard it. The document stays as it is until the
// edit is accepted, which is then one undo step. Knows VS Code and the server's methods; the model's work is elsewhere.

import * as vscode from "vscode";
import type { Range, WorkspaceEdit } from "vscode-languageclient/node";

import type { Server, Where } from "./server";

const SCHEME = "midfill-edit";
const FILL = "Fill Instead";
const CHANGED = "the document has changed since, so the edit is not applied. Ask again.";

/** What is to be done. `instruction` undefined: the selection is filled in again. */
interface Wish {
  readonly document: vscode.TextDocument;
  readonly version: number;
  readonly range: vscode.Range;
  readonly instruction?: string;
  readonly seed: number;
}

/** A wish from the question to its end; with `edit`, what there is to accept in `version` of the document. */
interface Session extends Wish {
  readonly token: string;
  readonly page: vscode.Uri;
  readonly cancel: vscode.CancellationTokenSource;
  text: string;
  opened: boolean;
  version: number;
  range: vscode.Range;
  edit?: vscode.WorkspaceEdit;
}

/** As the server answers: `version` is that of the document that the edit fits; `message` says why there is none. */
type Answer =
  | { edit: WorkspaceEdit; range: Range; version: number }
  | { edit: null; message: string; offer?: string };

export class Edits implements vscode.Disposable {
  private session: Session | undefined;
  private count = 0;
  private lastInstruction = "";
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly server: Server,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
        onDidChange: this.changed.event,
        provideTextDocumentContent: (uri) => (this.session?.page.toString() === uri.toString() ? this.session.text : ""),
      }),
      server.onEditDraft((draft) => {
        if (this.session?.token === draft.token && !this.session.edit) {
          void this.show(this.session, around(this.session, draft.text));
        }
      }),
      server.onEditAction(({ fill, where }) => void this.act(fill, where)),
      vscode.window.tabGroups.onDidChangeTabs((event) => {
        if (this.session?.opened && event.closed.some((tab) => shows(tab, this.session!.page))) {
          void this.discard();
        }
      }),
    ];
  }

  dispose(): void {
    this.session?.cancel.cancel();
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Ask what to do with the selection, or with the line of the cursor, and have it done. */
  async edit(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) {
      return;
    }
    const { document, selection } = editor;
    const range = selection.isEmpty ? document.lineAt(selection.active.line).range : new vscode.Range(selection.start, selection.end);
    await this.instructed({ document, version: document.version, range, seed: 0 }, selection.isEmpty ? "this line" : "the selection");
  }

  private async instructed(wish: Wish, what: string): Promise<void> {
    const instruction = await vscode.window.showInputBox({
      title: "midfill: edit",
      prompt: `What to do with ${what}`,
      placeHolder: "for example: add type annotations",
      value: this.lastInstruction,
    });
    if (instruction?.trim()) {
      this.lastInstruction = instruction;
      await this.begin({ ...wish, instruction });
    }
  }

  /** Have the selection written anew between what stands around it. */
  async fill(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor || editor.selection.isEmpty) {
      void vscode.window.showInformationMessage("midfill: select what is to be filled in again.");
      return;
    }
    const { document, selection } = editor;
    const range = new vscode.Range(selection.start, selection.end);
    await this.begin({ document, version: document.version, range, seed: 0 });
  }

  /** What a code action asks for, with a question if there is no instruction in the document. */
  private async act(fill: boolean, where: Where | undefined): Promise<void> {
    const uri = where && this.server.fromProtocol.asUri(where.textDocument.uri).toString();
    const document = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri);
    if (!where || !document) {
      return fill ? this.fill() : this.edit();
    }
    const { version, instruction } = where;
    const wish = { document, version, range: this.server.fromProtocol.asRange(where.range), seed: 0 };
    return fill || instruction ? this.begin({ ...wish, instruction }) : this.instructed(wish, "the selection");
  }

  async accept(): Promise<void> {
    const session = this.session;
    if (!session?.edit) {
      return;
    }
    await this.discard();
    if (session.document.version !== session.version) {
      void vscode.window.showWarningMessage(`midfill: ${CHANGED}`);
      return;
    }
    if (await vscode.workspace.applyEdit(session.edit)) {
      await vscode.window.showTextDocument(session.document);
    }
  }

  /** The same once more, with other chances. */
  async retry(): Promise<void> {
    const session = this.session;
    if (session) {
      await this.discard();
      const { document, version, range, instruction, seed } = session;
      await this.begin({ document, version, range, instruction, seed: seed + 1 });
    }
  }

  async discard(): Promise<void> {
    const session = this.session;
    if (!session) {
      return;
    }
    this.session = undefined;
    session.cancel.cancel();
    await setContext(undefined);
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    await vscode.window.tabGroups.close(tabs.filter((tab) => shows(tab, session.page)));
  }

  private async begin(wish: Wish): Promise<void> {
    await this.discard();
    const token = `edit-${++this.count}`;
    const session: Session = {
      ...wish,
      token,
      page: vscode.Uri.from({ scheme: SCHEME, path: wish.document.uri.path, query: token }),
      cancel: new vscode.CancellationTokenSource(),
      text: wish.document.getText(),
      opened: false,
    };
    this.session = session;
    await setContext("asking");
    const title = `midfill: ${wish.instruction ?? "filling the selection"}`;
    const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
    try {
      const answer = await vscode.window.withProgress(options, (_, cancelled) => {
        cancelled.onCancellationRequested(() => this.session === session && void this.discard());
        return this.ask(session);
      });
      if (this.session === session) {
        await this.answered(session, answer);
      }
    } catch (error) {
      // That the request of a discarded edit ends with an error is what was wanted.
      if (this.session === session) {
        await this.discard();
        const message = error instanceof Error ? error.message : String(error);
        this.log.warn(`edit: ${message}`);
        void vscode.window.showErrorMessage(`midfill: ${message}`);
      }
    }
  }

  private ask({ instruction, ...session }: Session): Promise<Answer> {
    const params = {
      textDocument: this.server.toProtocol.asTextDocumentIdentifier(session.document),
      version: session.version,
      range: this.server.toProtocol.asRange(session.range),
      seed: session.seed,
      draftToken: session.token,
    };
    const cancelled = session.cancel.token;
    return instruction === undefined
      ? this.server.ask("midfill/fill", params, cancelled)
      : this.server.ask("midfill/edit", { ...params, instruction }, cancelled);
  }

  private async answered(session: Session, answer: Answer): Promise<void> {
    if (answer.edit && answer.version === session.document.version) {
      session.edit = await this.server.fromProtocol.asWorkspaceEdit(answer.edit);
      session.version = answer.version;
      session.range = this.server.fromProtocol.asRange(answer.range);
      await setContext("proposed");
      await this.show(session, applied(session, session.edit.get(session.document.uri)));
      return;
    }
    await this.discard();
    const [message, choices] = answer.edit ? [CHANGED, []] : [answer.message, answer.offer ? [FILL] : []];
    if ((await vscode.window.showWarningMessage(`midfill: ${message}`, ...choices)) === FILL) {
      const { document, version, range, seed } = session;
      await this.begin({ document, version, range, seed });
    }
  }

  /** The document as it would be, beside the document as it is. */
  private async show(session: Session, text: string): Promise<void> {
    session.text = text;
    this.changed.fire(session.page);
    if (!session.opened) {
      session.opened = true;
      const page = await vscode.workspace.openTextDocument(session.page);
      await vscode.languages.setTextDocumentLanguage(page, session.document.languageId);
      const key = process.platform === "darwin" ? "Cmd" : "Ctrl";
      const title = `midfill: ${session.instruction ?? "fill"} (${key}+Enter accepts, Escape discards)`;
      const selection = new vscode.Range(session.range.start, session.range.start);
      await vscode.commands.executeCommand("vscode.diff", session.document.uri, session.page, title, { selection });
    }
  }
}

function around(session: Session, text: string): string {
  return applied(session, [new vscode.TextEdit(session.range, text)]);
}

function applied(session: Session, edits: readonly vscode.TextEdit[]): string {
  const { document } = session;
  const at = (position: vscode.Position) => document.offsetAt(position);
  return [...edits]
    .sort((a, b) => at(b.range.start) - at(a.range.start))
    .reduce((text, { range, newText }) => text.slice(0, at(range.start)) + newText + text.slice(at(range.end)), document.getText());
}

function shows(tab: vscode.Tab, page: vscode.Uri): boolean {
  return tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === page.toString();
}

async function setContext(value: string | undefined): Promise<void> {
  await vscode.commands.executeCommand("setContext", "midfill.edit", value);
}
