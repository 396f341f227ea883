// Measures how long ghost text takes from the last key, with the embedded model in a real window: `node measure.ts`.
// Where the model has nothing to say within SILENCE ms, a round is counted as silent.

import { setTimeout } from "node:timers/promises";

import { Editor } from "./editor.ts";

const ROUNDS = Number(process.env.ROUNDS ?? 30);
const SILENCE = 3000;
const APP = "class A:\n    def __init__(self, value):\n        self.value = value\n\n    def all(self):\n        ";

const editor = await Editor.start({ files: { "app.py": APP }, settings: { "midfill.minConfidence": 0 } });

/** Milliseconds from the last key that was pressed in the page to the first ghost text after it; 0 for none. */
async function lastKeyToGhost(page: import("playwright-core").Page): Promise<number> {
  const read = () => page.evaluate(() => (globalThis as unknown as { midfill: { ms: number } }).midfill.ms);
  const end = performance.now() + SILENCE;
  while (!(await read()) && performance.now() < end) {
    await setTimeout(50);
  }
  return read();
}

try {
  const opened = performance.now();
  const window = await editor.window("app.py");
  console.log(`window opened to midfill ready, the engine's start in it: ${Math.round(performance.now() - opened)} ms`);
  await window.page.evaluate(() => {
    const seen = { key: 0, ms: 0 };
    (globalThis as unknown as { midfill: object }).midfill = seen;
    document.addEventListener("keydown", () => Object.assign(seen, { key: performance.now(), ms: 0 }), true);
    new MutationObserver(() => {
      if (!seen.ms && document.querySelector(".ghost-text-decoration, .ghost-text .view-line")) {
        seen.ms = performance.now() - seen.key;
      }
    }).observe(document.body, { childList: true, subtree: true });
  });
  await window.press("Control+End");
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await window.type(`for value_${round} in self`);
    await window.press(".");
    times.push(await lastKeyToGhost(window.page));
    await window.press("Escape", "Enter");
  }
  const answered = times.filter(Boolean);
  const warm = answered.slice(1).sort((a, b) => a - b).map(Math.round);
  console.log(`last key to ghost text: first ${Math.round(answered[0])} ms, then median ${warm[warm.length >> 1]},`);
  console.log(`from ${warm[0]} to ${warm.at(-1)} ms; ${ROUNDS - answered.length} of ${ROUNDS} rounds silent`);
} finally {
  await editor.stop();
}
