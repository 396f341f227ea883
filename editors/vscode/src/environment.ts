// The extension's own Python environment: a folder of its storage that holds nothing but midfill and what it needs.
// Knows Python and pip; neither VS Code nor whether the user has agreed.

import { execFile } from "node:child_process";
import { promises as fs } from "node:fs";
import * as path from "node:path";

import { LocateError, isProgram } from "./locate";

/** Oldest Python that midfill runs on. */
export const OLDEST = [3, 11] as const;

const PYTHONS = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];

/** Runs a program to its end and gives what it printed; `cwd` is never the workspace. Rejects with what it said. */
export type Run = (program: string, args: readonly string[], signal?: AbortSignal) => Promise<string>;

/** A Run in `cwd` that hands every line to `log`. */
export function runner(cwd: string, log: (line: string) => void = () => undefined): Run {
  return (program, args, signal) =>
    new Promise((resolve, reject) => {
      const child = execFile(
        program,
        [...args],
        { cwd, signal, maxBuffer: 64 * 1024 * 1024, windowsHide: true },
        (error, stdout, stderr) => {
          if (error) {
            const last = stderr.trim().split("\n").pop() || error.message;
            reject(signal?.aborted ? error : new Error(last));
          } else {
            resolve(stdout);
          }
        },
      );
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on("data", (text: string) => log(text.trimEnd()));
      }
    });
}

export class Environment {
  private readonly mark: string;

  /** `folder`: where it lies or would lie. `wheel`: midfill of the version that belongs to this extension. */
  constructor(
    readonly folder: string,
    readonly wheel: string,
    private readonly windows: boolean,
  ) {
    this.mark = path.join(folder, "installed.txt");
  }

  /** The program of a finished environment; undefined while there is none. */
  async program(): Promise<string | undefined> {
    const file = this.bin("midfill");
    return (await this.installed()) !== undefined && (await isProgram(file)) ? file : undefined;
  }

  /** Whether it was filled from another wheel than that of this extension. */
  async outdated(): Promise<boolean> {
    const installed = await this.installed();
    return installed !== undefined && installed !== path.basename(this.wheel);
  }

  /** Make it anew; what was there is gone. Nothing half-made is taken for an environment. Rejects with a sentence. */
  async make(python: string, pipArguments: readonly string[], run: Run, signal: AbortSignal): Promise<string> {
    await fs.rm(this.folder, { recursive: true, force: true });
    // -I: neither the working directory nor variables of the user decide which modules are loaded.
    await run(python, ["-I", "-m", "venv", this.folder], signal);
    const pip = ["-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"];
    await run(this.bin("python"), [...pip, ...pipArguments, this.wheel], signal);
    await run(this.bin("midfill"), ["--version"], signal);
    await fs.writeFile(this.mark, path.basename(this.wheel));
    return this.bin("midfill");
  }

  async remove(): Promise<void> {
    await fs.rm(this.folder, { recursive: true, force: true });
  }

  private async installed(): Promise<string | undefined> {
    return fs.readFile(this.mark, "utf8").catch(() => undefined);
  }

  private bin(name: string): string {
    return this.windows ? path.join(this.folder, "Scripts", `${name}.exe`) : path.join(this.folder, "bin", name);
  }
}

/** The first of `candidates` that is new enough. Throws LocateError with what was found instead. */
export async function newEnough(candidates: readonly string[], run: Run): Promise<string> {
  const seen: string[] = [];
  for (const python of candidates) {
    const code = "import sys; print(*sys.version_info[:2])";
    const [major, minor] = (await run(python, ["-I", "-c", code]).catch(() => "")).trim().split(" ").map(Number);
    if (major === OLDEST[0] && minor >= OLDEST[1]) {
      return python;
    }
    seen.push(major ? `${python} (${major}.${minor})` : python);
  }
  const found = seen.length ? `found only ${seen.join(", ")}` : "found none";
  throw new LocateError(
    `midfill needs Python ${OLDEST.join(".")} or newer and ${found}. Install one, or name it in the setting midfill.python.`,
  );
}

/** Names under which a Python may be on the PATH, the usual one first. */
export const pythonNames: readonly string[] = PYTHONS;
