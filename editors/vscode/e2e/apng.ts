// One animated PNG out of several still ones, as the W3C's PNG specification, third edition, puts them together. Knows
// chunks, not pixels.

import { crc32 } from "node:zlib";

interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

/** `frames`: PNG files of the same size and kind; each is shown for `seconds`, the last one for `last`, for ever. */
export function animated(frames: readonly Buffer[], seconds: number, last: number): Buffer {
  const [header] = chunks(frames[0]);
  const size = header.data.subarray(0, 8);
  let number = 0;
  const parts = frames.flatMap((frame, index): Chunk[] => {
    const shown = index === frames.length - 1 ? last : seconds;
    const control = Buffer.concat([u32(number++), size, u32(0), u32(0), u16(Math.round(shown * 100)), u16(100), u16(0)]);
    const image = Buffer.concat(chunks(frame).filter(({ type }) => type === "IDAT").map(({ data }) => data));
    const data = index === 0 ? { type: "IDAT", data: image } : { type: "fdAT", data: Buffer.concat([u32(number++), image]) };
    return [{ type: "fcTL", data: control }, data];
  });
  const all = [header, { type: "acTL", data: Buffer.concat([u32(frames.length), u32(0)]) }, ...parts, { type: "IEND", data: Buffer.alloc(0) }];
  return Buffer.concat([frames[0].subarray(0, 8), ...all.map(bytes)]);
}

function chunks(file: Buffer): Chunk[] {
  const found: Chunk[] = [];
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    found.push({ type: file.toString("latin1", at + 4, at + 8), data: file.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return found;
}

function bytes({ type, data }: Chunk): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  return Buffer.concat([u32(data.length), body, u32(crc32(body))]);
}

function u32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32BE(value);
  return buffer;
}

function u16(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeUInt16BE(value);
  return buffer;
}
