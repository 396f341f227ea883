// Takes the pictures of the README in real windows: `run pictures.ts`. The ghost text is an answer of the scripted engine.
// The denoising is that of the embedded model, in slow motion: the engine's process runs for a small part of the time.

import * as fs from "node:fs";
import * as path from "node:path";
import { setTimeout } from "node:timers/promises";

import { animated } from "./apng.ts";
import { Editor, type Window } from "./editor.ts";

const IMAGES = path.join(import.meta.dirname, "../images");
const LOOKS = {
  "breadcrumbs.enabled": false,
  "diffEditor.renderSideBySide": false,
  "editor.fontSize": 15,
  "editor.stickyScroll.enabled": false,
  "editor.renderWhitespace": "none",
  "editor.lightbulb.enabled": "off",
  "workbench.activityBar.location": "hidden",
  "workbench.colorTheme": "Default Dark Modern",
};

const PRICES = 'def total(prices, discount=0):\n    """What everything costs together."""\n    result = 0\n    for price in prices:';
const BODY = "\n        result += price\n    return result * (1 - discount)";

const SELECTED = ["lines = []", "        for line in handle:", "            lines.append(line)", '        return "".join(lines)'];
const NOTES = [
  "def read(path):",
  '    with open(path, "r", encoding="utf-8") as handle:',
  "        return handle.read().strip()",
  "",
  "",
  "def read_text(path):",
  '    with open(path, "r", encoding="utf-8") as handle:',
  `        ${SELECTED.join("\n")}`,
  "",
].join("\n");

/** Of SLOW ms, the engine runs for RUN. */
const [RUN, SLOW] = [4, 250];

async function inWindow(wishes: Parameters<typeof Editor.start>[0], use: (editor: Editor, window: Window) => Promise<void>): Promise<void> {
  const editor = await Editor.start({ ...wishes, settings: { ...LOOKS, ...wishes.settings } });
  try {
    const window = await editor.window(Object.keys(wishes.files)[0]);
    await window.press("Control+b");
    await window.page.setViewportSize({ width: 720, height: 430 });
    await use(editor, window);
  } finally {
    await editor.stop();
  }
}

function picture(window: Window, height: number): Promise<Buffer> {
  return window.page.screenshot({ clip: { x: 0, y: 30, width: 720, height } });
}

/** Slow `pid` down until what is returned is called. */
function slowed(pid: number): () => void {
  const timer = setInterval(async () => {
    process.kill(pid, "SIGCONT");
    await setTimeout(RUN);
    process.kill(pid, "SIGSTOP");
  }, SLOW);
  return () => {
    clearInterval(timer);
    void setTimeout(2 * RUN).then(() => process.kill(pid, "SIGCONT"));
  };
}

await inWindow({ script: [{ after: "in prices:", fill: BODY, confidence: 0.9 }], files: { "prices.py": PRICES } }, async (_, window) => {
  await window.press("Control+End", "Backspace");
  await window.type(":");
  await window.ghost(BODY);
  fs.writeFileSync(path.join(IMAGES, "ghost-text.png"), await picture(window, 190));
});

await inWindow({ files: { "notes.py": NOTES } }, async (editor, window) => {
  const { pid } = JSON.parse(editor.midfill("engine", "status", "--json")) as { pid: number };
  await window.press("Control+End", "ArrowUp", "End", ...Array(SELECTED.length - 1).fill("Shift+ArrowUp"), "Shift+Home");
  const frames = [await picture(window, 330)];
  const faster = slowed(pid);
  await window.command("midfill: Fill Selection");
  const drafted = window.page.locator(".monaco-diff-editor .editor.modified .view-line");
  const marked = window.page.locator(".monaco-diff-editor .editor.modified .line-insert");
  const accept = window.page.locator(".editor-actions .codicon-check");
  let seen = "";
  while ((await accept.count()) === 0) {
    const lines = (await drafted.allTextContents()).join("\n");
    if ((await marked.count()) > 0 && lines !== seen) {
      frames.push(await picture(window, 330));
      seen = lines;
    }
  }
  faster();
  await setTimeout(1000);
  frames.push(await picture(window, 330));
  fs.writeFileSync(path.join(IMAGES, "denoising.png"), animated(frames, 1.2, 3.5));
});
