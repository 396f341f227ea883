// Where programs are: the one that a setting names, or one on the PATH, but never one of the workspace.
// Knows files and the PATH; neither VS Code nor what the programs do.

import { promises as fs, constants } from "node:fs";
import * as os from "node:os";
import * as path from "node:path";

export interface Places {
  /** The variable PATH. */
  readonly search: string;
  /** Folders whose programs are never started: anybody may have written them. */
  readonly distrusted: readonly string[];
  readonly windows: boolean;
}

/** A sentence for the user. */
export class LocateError extends Error {}

/** The program that the setting `name` names with `value`, a path; undefined where it names none. Throws LocateError. */
export async function named(name: string, value: string): Promise<string | undefined> {
  const given = value.trim();
  if (!given) {
    return undefined;
  }
  const file = given.startsWith("~/") ? path.join(os.homedir(), given.slice(2)) : given;
  if (!path.isAbsolute(file)) {
    throw new LocateError(`The setting ${name} must be an absolute path, not "${given}".`);
  }
  if (!(await isProgram(file))) {
    throw new LocateError(`The setting ${name} names ${file}, which is no program that can be started.`);
  }
  return file;
}

/** The first of `names` in the folders of the PATH, for each name all folders in turn. */
export async function onPath(names: readonly string[], places: Places): Promise<string[]> {
  const distrusted = await Promise.all(places.distrusted.map(real));
  const found: string[] = [];
  for (const name of names) {
    for (const folder of places.search.split(path.delimiter)) {
      // A relative entry means another folder in every workspace.
      if (!path.isAbsolute(folder)) {
        continue;
      }
      const file = path.join(folder, places.windows ? `${name}.exe` : name);
      if ((await isProgram(file)) && !isWithin(await real(folder), distrusted) && !found.includes(file)) {
        found.push(file);
      }
    }
  }
  return found;
}

/** Whether `folder` is one of `others` or lies below one. */
export function isWithin(folder: string, others: readonly string[]): boolean {
  return others.some((other) => {
    const way = path.relative(other, folder);
    return way !== ".." && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way);
  });
}

export async function isProgram(file: string): Promise<boolean> {
  try {
    await fs.access(file, constants.X_OK);
    return (await fs.stat(file)).isFile();
  } catch {
    return false;
  }
}

async function real(folder: string): Promise<string> {
  return fs.realpath(folder).catch(() => path.resolve(folder));
}
