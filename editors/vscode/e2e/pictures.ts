// Takes the pictures of the README in a real window, with answers of the scripted engine: `node pictures.ts`.

import * as path from "node:path";

import { Editor, type Window } from "./editor.ts";

const IMAGES = path.join(import.meta.dirname, "../images");
const PRICES = [
  "def total(prices, discount=0):",
  '    """What everything costs together."""',
  "    result = 0",
  "    for price in prices:",
].join("\n");
const SELECTED = "    result = 0\n    for price in prices:\n        result += price\n    return result";
const DRAFTS = ["    return sum(░░░░░░) ░ ░░░", "    return sum(prices) ░ (░ - ░░░░░░░░)"];
const ANSWER = "    return sum(prices) * (1 - discount)";
const SCRIPT = [
  { after: "in prices:", fill: "\n        result += price\n    return result * (1 - discount)", confidence: 0.9 },
  { after: "together.\"\"\"\n", fill: ANSWER, drafts: DRAFTS, delay_ms: 6000 },
];

const editor = await Editor.start({
  script: SCRIPT,
  files: { "prices.py": PRICES, "shop.py": `${PRICES.split("\n").slice(0, 2).join("\n")}\n${SELECTED}\n` },
  settings: {
    "breadcrumbs.enabled": false,
    "diffEditor.renderSideBySide": false,
    "editor.fontSize": 15,
    "editor.stickyScroll.enabled": false,
    "editor.renderWhitespace": "none",
    "editor.lightbulb.enabled": "off",
    "workbench.activityBar.location": "hidden",
    "workbench.colorTheme": "Default Dark Modern",
  },
});

async function open(file: string): Promise<Window> {
  const window = await editor.window(file);
  await window.press("Control+b");
  await window.page.setViewportSize({ width: 720, height: 430 });
  return window;
}

const take = (window: Window, name: string) =>
  window.page.screenshot({ path: path.join(IMAGES, name), clip: { x: 0, y: 30, width: 720, height: 190 } });

try {
  const typing = await open("prices.py");
  await typing.press("Control+End", "Backspace");
  await typing.type(":");
  await typing.ghost("\n        result += price\n    return result * (1 - discount)");
  await take(typing, "ghost-text.png");

  const editing = await open("shop.py");
  await editing.press("Control+Home", "ArrowDown", "ArrowDown", ...Array(3).fill("Shift+ArrowDown"), "Shift+End", "Control+i");
  await editing.answer("use sum and apply the discount");
  for (const [step, line] of [...DRAFTS, ANSWER].entries()) {
    await editing.proposed(line);
    await take(editing, `edit-${step + 1}.png`);
  }
} finally {
  await editor.stop();
}
