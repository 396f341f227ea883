// Measures how long ghost text takes from the last key, with the embedded model in a real window: `run measure.ts`. Warm:
// the engine runs. Cold: it does not; the key has to start it and to wait for its model. Where nothing is offered within
// `silence` ms, a round is counted as silent. ROUNDS, COLD: how many.

import { setTimeout } from "node:timers/promises";

import { Editor, until, type Window } from "./editor.ts";

const ROUNDS = Number(process.env.ROUNDS ?? 30);
const COLD = Number(process.env.COLD ?? 12);
const METHOD = (name: string) => `    def get_${name}(self):\n        return self.${name}\n`;
const APP = `class A:\n${METHOD("name")}\n${METHOD("size")}`;
const WORDS = ["color", "width", "height", "title", "value", "owner", "label", "price", "level", "count", "index", "state"];

interface Seen {
  key: number;
  /** Whether ghost text stood there already. */
  before: boolean;
  ms: number;
}

/** From now on, the page notes when a key is pressed and when ghost text is attached after it. */
async function watched(window: Window): Promise<void> {
  await window.page.evaluate(() => {
    const there = () => document.querySelector(".ghost-text-decoration, .ghost-text .view-line") !== null;
    const seen: Seen = { key: 0, before: false, ms: 0 };
    (globalThis as unknown as { seen: Seen }).seen = seen;
    document.addEventListener("keydown", () => Object.assign(seen, { key: performance.now(), before: there(), ms: 0 }), true);
    new MutationObserver(() => {
      if (!seen.ms && there()) {
        seen.ms = performance.now() - seen.key;
      }
    }).observe(document.body, { childList: true, subtree: true });
  });
}

/** Types a method below the others, in one go up to a dot. Milliseconds from the dot to ghost text; undefined for none. */
async function measured(window: Window, number: number, silence: number): Promise<number | undefined> {
  const word = WORDS[number % WORDS.length];
  await window.press("Control+End");
  await window.page.keyboard.type(`\n    def get_${word}(self):\n        return self.`);
  const end = performance.now() + silence;
  for (;;) {
    const seen = await window.page.evaluate(() => (globalThis as unknown as { seen: Seen }).seen);
    if (seen.ms || performance.now() > end) {
      await window.press("Escape");
      await window.page.keyboard.type(`${word}\n`);
      return seen.ms && !seen.before ? seen.ms : undefined;
    }
    await setTimeout(20);
  }
}

function said(name: string, times: readonly (number | undefined)[]): void {
  const shown = times.filter((ms) => ms !== undefined).map(Math.round).sort((a, b) => a - b);
  const median = shown.length % 2 ? shown[shown.length >> 1] : (shown[shown.length / 2 - 1] + shown[shown.length / 2]) / 2;
  console.log(`${name}: last key to ghost text ${median} ms in the median, from ${shown[0]} to ${shown.at(-1)}; ` +
    `${shown.length} of ${times.length} rounds, the others were silent`);
}

const editor = await Editor.start({ files: { "app.py": APP }, settings: { "midfill.minConfidence": 0, "editor.autoIndent": "none" } });
try {
  const opened = performance.now();
  const window = await editor.window("app.py");
  console.log(`window opened to midfill ready, the engine's start in it: ${Math.round(performance.now() - opened)} ms`);
  await watched(window);
  await measured(window, 0, 10_000);
  const [warm, cold]: (number | undefined)[][] = [[], []];
  for (let round = 1; round <= ROUNDS; round++) {
    warm.push(await measured(window, round, 3000));
  }
  said("warm", warm);
  for (let round = 1; round <= COLD; round++) {
    await window.press("Escape");
    await until("the engine has ended", () => {
      editor.midfill("engine", "stop");
      return !JSON.parse(editor.midfill("engine", "status", "--json")).pid;
    });
    cold.push(await measured(window, ROUNDS + round, 30_000));
  }
  said("cold", cold);
} finally {
  await editor.stop();
}
