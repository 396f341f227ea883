// Tells the server what is shown and accepted in part, so that it can count; full acceptance it learns from the command
// of the item. VS Code tells extensions neither: what is on the screen is inferred from what was offered and where the
// cursor is. Knows items and texts by shape; not VS Code.

/** Of an inline completion item: its text, and where in the document that begins. */
export interface Offer<Item> {
  readonly item: Item;
  readonly text: string;
  readonly line: number;
  readonly character: number;
}

/** A text that has been put into a document at `line`, `character`, without deleting anything else than white space. */
export interface Insertion {
  readonly line: number;
  readonly character: number;
  readonly text: string;
}

const PAIR = /^(\(\)|\[\]|\{\}|""|''|``)$/;

/** The offer that `insertion` is a part of, and how much of its text is there now, or undefined.
 *
 * `before(line, from, to)` is the text of a line. One character may as well have been typed, and so may a pair of
 * brackets that closes itself; the whole text is not a part. */
export function acceptedPart<Item>(
  offers: readonly Offer<Item>[],
  insertion: Insertion,
  before: (line: number, from: number, to: number) => string,
): { item: Item; length: number } | undefined {
  if (insertion.text.length < 2 || PAIR.test(insertion.text)) {
    return undefined;
  }
  for (const offer of offers) {
    if (offer.line !== insertion.line || offer.character > insertion.character) {
      continue;
    }
    const there = before(offer.line, offer.character, insertion.character) + insertion.text;
    if (there.length < offer.text.length && offer.text.startsWith(there)) {
      return { item: offer.item, length: there.length };
    }
  }
  return undefined;
}
