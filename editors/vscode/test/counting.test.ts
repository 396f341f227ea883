import assert from "node:assert/strict";
import { test } from "node:test";

import { acceptedPart } from "../src/counting";

/** `line` with a cursor mark; the offer begins `back` characters before it. */
function part(line: string, offered: string, inserted: string, back = 0) {
  const cursor = line.indexOf("│");
  const offers = [{ item: "it", text: offered, line: 4, character: cursor - back }];
  return acceptedPart(offers, { line: 4, character: cursor, text: inserted }, (_, from, to) => line.replace("│", "").slice(from, to));
}

test("a word of the ghost text", () => {
  assert.deepEqual(part("x = │", "first + second", "first "), { item: "it", length: 6 });
});

test("a word after some that have been typed", () => {
  assert.deepEqual(part("x = fir│", "first + second", "st ", 3), { item: "it", length: 6 });
});

test("the length counts what the item replaces before the cursor", () => {
  assert.deepEqual(part("    │", "  return x\n", "return ", 2), { item: "it", length: 9 });
});

test("what was typed, closed by itself, pasted or accepted in full is no part", () => {
  assert.equal(part("x = │", "first", "f"), undefined);
  assert.equal(part("f│", "() + 1", "()"), undefined);
  assert.equal(part("x = │", "first", "second"), undefined);
  assert.equal(part("x = │", "first", "first"), undefined);
});

test("on another line, or before the offer, is elsewhere", () => {
  const offers = [{ item: "it", text: "first + second", line: 4, character: 4 }];
  assert.equal(acceptedPart(offers, { line: 5, character: 4, text: "first " }, () => ""), undefined);
  assert.equal(acceptedPart(offers, { line: 4, character: 3, text: "first " }, () => ""), undefined);
});
