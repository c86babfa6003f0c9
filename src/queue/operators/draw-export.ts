/** The file of a draw that has been (draw/draw-file.ts), read from Postgres while somebody writes it. */
import { numbers } from '../../postgres/array-literal.ts';
import { type Database, rows } from '../../postgres/database.ts';
import { drawLines } from '../draw/draw-file.ts';
import type { Digest } from '../draw/entries-hash.ts';
import { commitmentOf } from '../draw/seed.ts';
import { digestOf, orderOf } from '../drawing.ts';
import type { DrawState } from '../queue-state.ts';

/** Lines in a piece. */
const PIECE_LINES = 1_000;

/** @returns the text in pieces of whole lines. They throw the database's errors */
export async function drawFileOf(
  db: Database,
  saleId: string,
  drawn: NonNullable<DrawState['drawn']>,
  { seed, saltKey }: Pick<DrawState, 'seed' | 'saltKey'>,
): Promise<AsyncIterable<string>> {
  const { entriesHash } = drawn;
  const order = await orderOf(seed, drawn);
  const draw = { saleId, commitment: commitmentOf(seed), seed, entriesHash, numbers: order };
  return piecesOf(drawLines(draw, (wanted) => readDigestsOf(db, saleId, saltKey, wanted)));
}

async function* piecesOf(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let piece: string[] = [];
  for await (const line of lines) {
    piece.push(line);
    if (piece.length < PIECE_LINES) continue;
    yield `${piece.join('\n')}\n`;
    piece = [];
  }
  if (piece.length > 0) yield `${piece.join('\n')}\n`;
}

/** The digests of these entries, in the same order; `null` for a number that nobody has. */
async function readDigestsOf(
  db: Database,
  saleId: string,
  saltKey: Uint8Array,
  wanted: readonly number[],
): Promise<Digest[]> {
  const found = await rows<{ number: string; buyer_id: string; digest: string | null }>(
    db,
    'SELECT number::text, buyer_id, digest FROM places WHERE sale_id = ? AND number = ANY (?::bigint[])',
    [saleId, numbers(wanted)],
  );
  const digests = new Map(
    found.map(({ number, buyer_id: buyerId, digest }) => [
      Number(number),
      digest ?? digestOf(saltKey, { saleId, number: Number(number), buyerId }),
    ]),
  );
  return wanted.map((number) => digests.get(number) ?? null);
}
