// Measures how long a new user waits: `PATIENCE=1800000 run newcomer.ts`. From a window with nothing but the .vsix in it,
// over a Python environment that pip really fills, to the first ghost text. PIP_CACHE_DIR says which cache pip has; by
// default none.

import { Editor, until } from "./editor.ts";

const METHOD = (name: string) => `    def get_${name}(self):\n        return self.${name}\n`;
const APP = `class A:\n${METHOD("name")}\n${METHOD("size")}\n    def get_color(self):\n        return self`;

const editor = await Editor.start({ files: { "app.py": APP }, settings: { "midfill.minConfidence": 0 }, program: "" });
try {
  const window = await editor.window("app.py", "not set up yet");
  const since = performance.now();
  const say = (what: string) => console.log(`${((performance.now() - since) / 1000).toFixed(1)} s: ${what}`);
  await window.button("Set Up…");
  await window.button("Make the Environment");
  await window.state("ready");
  say("the environment is made, the model is loaded");
  await window.press("Control+End");
  await window.type(".");
  await until("ghost text", async () => (await window.ghostText()) !== "");
  say(`ghost text: ${JSON.stringify(await window.ghostText())}`);
} finally {
  await editor.stop();
}
