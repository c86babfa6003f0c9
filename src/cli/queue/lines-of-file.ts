import { createReadStream } from 'node:fs';

const LINE_FEED = 10;
/** A character of a JavaScript string has at most 3 in UTF-8. With 4, a line that is cut still is too long. */
const BYTES_PER_CHARACTER = 4;

/** In place of a file: what the command is given on its standard input. */
const STANDARD_INPUT = '-';

/**
 * The lines of a file, or of the standard input, without their line feeds. The last one needs none. What a line has beyond `maxCharacters` may be cut off,
 * though not all of it: a file without line feeds needs no more memory than others.
 * @throws an error of the file system
 */
export async function* linesOfFile(file: string, maxCharacters: number): AsyncGenerator<string> {
  const maxBytes = maxCharacters * BYTES_PER_CHARACTER;
  let begun: Buffer = Buffer.alloc(0);
  for await (const chunk of (file === STANDARD_INPUT
    ? process.stdin
    : createReadStream(file)) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let to = chunk.indexOf(LINE_FEED); to >= 0; to = chunk.indexOf(LINE_FEED, from)) {
      yield joined(begun, chunk.subarray(from, to), maxBytes).toString();
      begun = Buffer.alloc(0);
      from = to + 1;
    }
    begun = joined(begun, chunk.subarray(from), maxBytes);
  }
  if (begun.length > 0) yield begun.toString();
}

function joined(begun: Buffer, rest: Buffer, maxBytes: number): Buffer {
  const more = rest.subarray(0, maxBytes - begun.length);
  return begun.length === 0 ? more : Buffer.concat([begun, more]);
}
