// How the server's state looks in the status bar. Knows the states by name; not how they come about.

/** What `midfill/status` tells, and states that only the extension can see: "missing", "failed". */
export interface Status {
  readonly state: string;
  readonly detail?: string;
  readonly hint?: string;
  readonly model?: string;
  readonly progress?: { readonly percent?: number };
}

export interface Look {
  readonly text: string;
  readonly tooltip: string;
  readonly level: "plain" | "warning" | "error";
}

type Row = readonly [icon: string, sentence: string, level: Look["level"]];

const ROWS: Readonly<Record<string, Row>> = {
  starting: ["loading~spin", "starting", "plain"],
  loading: ["loading~spin", "loading the model", "plain"],
  ready: ["sparkle", "ready", "plain"],
  busy: ["sync~spin", "completing", "plain"],
  stopped: ["debug-pause", "the engine has ended and starts when it is needed", "plain"],
  off: ["circle-slash", "off", "plain"],
  warning: ["warning", "the last request failed", "warning"],
  errored: ["error", "completion is not possible", "error"],
  missing: ["cloud-download", "not set up yet", "warning"],
  failed: ["error", "the server does not run", "error"],
};

export function look(status: Status): Look {
  const [icon, sentence, level] = ROWS[status.state] ?? ["question", status.state, "plain"];
  const percent = status.state === "loading" ? status.progress?.percent : undefined;
  const share = percent === undefined ? "" : ` ${percent}%`;
  const lines = [`midfill: ${sentence}${share}`, status.detail, status.hint && `To do: ${status.hint}`];
  if (status.model) {
    lines.push(`Model: ${status.model}`);
  }
  return { text: `$(${icon}) midfill${share}`, tooltip: lines.filter(Boolean).join("\n"), level };
}

export interface Entry {
  readonly label: string;
  readonly command: string;
}

/** What a click on the status bar item offers, what matters now first. */
export function menu(status: Status, language: string | undefined): Entry[] {
  const setUp = { label: "$(cloud-download) Set up the server", command: "midfill.setUp" };
  const log = { label: "$(output) Show the log", command: "midfill.showLog" };
  const restart = { label: "$(debug-restart) Restart", command: "midfill.restartServer" };
  if (status.state === "missing") {
    return [setUp, log];
  }
  if (status.state === "failed") {
    return [restart, log, setUp];
  }
  return [
    { label: "$(question) Why is there (no) completion here?", command: "midfill.explain" },
    { label: "$(circle-slash) Completions on or off, everywhere", command: "midfill.toggleEverywhere" },
    ...(language
      ? [{ label: `$(circle-slash) Completions on or off for ${language}`, command: "midfill.toggleLanguage" }]
      : []),
    { label: "$(symbol-misc) Select the model", command: "midfill.selectModel" },
    { label: "$(graph) Show statistics", command: "midfill.showStatistics" },
    log,
    restart,
  ];
}
