// What the server is told of VS Code's settings: those that the user has set, so that its own config.toml counts below
// them. Knows VS Code's configuration; not what the settings mean.

/** As far as we need VS Code's. */
export interface Section {
  get(name: string): unknown;
  inspect(name: string): object | undefined;
}

/** The values that are set anywhere, with VS Code's own order of user, workspace, folder and language. */
export function explicit(names: readonly string[], section: Section): Record<string, unknown> {
  const set = names.filter((name) => isSet(section.inspect(name)));
  return Object.fromEntries(set.map((name) => [name, section.get(name)]));
}

function isSet(inspected: object | undefined): boolean {
  return Object.entries(inspected ?? {}).some(
    ([where, value]) => where.endsWith("Value") && !where.startsWith("default") && value !== undefined,
  );
}

/** The server's settings in a manifest, without the section's name; its first table is generated from the server's. */
export function namesIn(manifest: { contributes: { configuration: { properties: object }[] } }): string[] {
  const properties = manifest.contributes.configuration[0].properties;
  return Object.keys(properties).map((name) => name.replace(/^midfill\./, ""));
}

/** The list with `item` if `wanted`, without it otherwise. */
export function withItem(list: readonly string[], item: string, wanted: boolean): string[] {
  const others = list.filter((other) => other !== item);
  return wanted ? [...others, item] : others;
}
