// The texts of the pages. Knows what the server and `midfill stats --json` answer; not VS Code.

export interface Count {
  readonly shown: number;
  readonly accepted: number;
  readonly partial: number;
  readonly chars: number;
}

export interface Statistics {
  readonly file: string;
  readonly total: Count;
  readonly days: readonly (Count & { readonly day: string; readonly language: string })[];
}

export interface Why {
  readonly sentence: string;
  readonly full: string;
  readonly decisions: readonly object[];
}

export function statisticsPage(statistics: Statistics): string {
  const rows = [...statistics.days].reverse().map((each) => row(each.day, each.language, each));
  return [
    "# midfill: the last 30 days, all editors",
    "",
    "| day | language | shown | accepted | in part | characters saved |",
    "|---|---|--:|--:|--:|--:|",
    row("all", "", statistics.total),
    ...rows,
    "",
    `Counted in ${statistics.file}, which is sent nowhere and may be deleted.`,
    "",
  ].join("\n");
}

function row(day: string, language: string, count: Count): string {
  const share = count.shown ? ` (${Math.round((100 * count.accepted) / count.shown)} %)` : "";
  return `| ${day} | ${language} | ${count.shown} | ${count.accepted}${share} | ${count.partial} | ${count.chars} |`;
}

export function whyPage(why: Why): string {
  const decisions = why.decisions.map((each) => JSON.stringify(each, undefined, 1).replace(/\n\s*/g, " "));
  return ["# midfill: why", "", why.full, "", `## The last ${decisions.length} decisions here`, "", ...decisions, ""].join("\n");
}
