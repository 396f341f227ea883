// Writes the table of the server's settings into package.json: `npm run settings`. Needs `midfill`, in .venv or on PATH.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const own = new URL("../../.venv/bin/midfill", import.meta.url).pathname;
const table = execFileSync(existsSync(own) ? own : "midfill", ["settings", "--vscode"], { encoding: "utf8" });
const file = new URL("package.json", import.meta.url);
const manifest = JSON.parse(readFileSync(file, "utf8"));
manifest.contributes.configuration[0].properties = JSON.parse(table);
writeFileSync(file, JSON.stringify(manifest, null, 2) + "\n");
