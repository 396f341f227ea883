// Reports what is on the screen and what is accepted in part, from what VS Code was offered and how documents change.
// Knows VS Code; the reckoning is in counting.ts.

import * as vscode from "vscode";

import { acceptedPart, type Offer } from "./counting";

type Send = (method: string, params: object) => unknown;

/** An item as the server knows it: by the command that it carries. */
type Known = { command: { command: string; arguments?: unknown[]; title: string } };

export class Shown implements vscode.Disposable {
  private send: Send = () => undefined;
  private offers: readonly Offer<Known>[] = [];
  private document: vscode.TextDocument | undefined;
  private readonly listener = vscode.workspace.onDidChangeTextDocument((event) => this.changed(event));

  /** Whom to tell from now on. */
  follow(send: Send): void {
    this.send = send;
    this.offers = [];
  }

  dispose(): void {
    this.listener.dispose();
  }

  /** VS Code is about to get `items` for `position`; it shows the first one if the cursor is still there. */
  offered(document: vscode.TextDocument, position: vscode.Position, items: vscode.InlineCompletionItem[]): void {
    this.document = document;
    this.offers = items.flatMap((item) => {
      const start = item.range?.start ?? position;
      const text = typeof item.insertText === "string" ? item.insertText : item.insertText.value;
      const known = item.command && { command: item.command };
      return known ? [{ item: known, text, line: start.line, character: start.character }] : [];
    });
    const first = this.offers[0];
    const editor = vscode.window.activeTextEditor;
    if (first && editor?.document === document && editor.selection.active.isEqual(position)) {
      void this.send("textDocument/didShowCompletion", { item: first.item });
    }
  }

  private changed(event: vscode.TextDocumentChangeEvent): void {
    if (event.document !== this.document || event.contentChanges.length !== 1) {
      return;
    }
    const { range, text } = event.contentChanges[0];
    const part = acceptedPart(this.offers, { line: range.start.line, character: range.start.character, text }, (line, from, to) =>
      event.document.getText(new vscode.Range(line, from, line, to)),
    );
    if (part) {
      void this.send("textDocument/didPartiallyAcceptCompletion", { item: part.item, acceptedLength: part.length });
    }
  }
}
