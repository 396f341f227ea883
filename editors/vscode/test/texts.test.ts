import assert from "node:assert/strict";
import { test } from "node:test";

import { statisticsPage, whyPage } from "../src/texts";

test("statistics: all first, then the newest day", () => {
  const count = { shown: 4, accepted: 1, partial: 2, chars: 30 };
  const page = statisticsPage({
    file: "/state/statistics.jsonl",
    total: { shown: 5, accepted: 1, partial: 2, chars: 30 },
    days: [
      { day: "2026-01-01", language: "python", ...count },
      { day: "2026-01-02", language: "go", shown: 0, accepted: 0, partial: 0, chars: 0 },
    ],
  });
  const rows = page.split("\n").filter((line) => line.startsWith("| "));
  assert.deepEqual(rows.slice(1), [
    "| all |  | 5 | 1 (20 %) | 2 | 30 |",
    "| 2026-01-02 | go | 0 | 0 | 0 | 0 |",
    "| 2026-01-01 | python | 4 | 1 (25 %) | 2 | 30 |",
  ]);
  assert.match(page, /\/state\/statistics\.jsonl, which is sent nowhere/);
});

test("why: the full story, then a line for each decision", () => {
  const page = whyPage({ sentence: "short", full: "all of it", decisions: [{ line: 1, why: "a\nb" }, { line: 2 }] });
  assert.match(page, /all of it/);
  assert.match(page, /last 2 decisions/);
  assert.equal(page.split("\n").filter((line) => line.startsWith("{")).length, 2);
});
