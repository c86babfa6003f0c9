/**
 * The draw of a queue once more, by the rules in docs/internals/draw.md and without any code of the product: what the product has
 * drawn is compared with this.
 */
import { createHash, createHmac } from 'node:crypto';

export interface DrawTruth {
  readonly saleId: string;
  /** Hexadecimal, as is the key. */
  readonly seed: string;
  readonly saltKey: string;
  /** The buyers of the entries, in the order of their numbers. */
  readonly buyers: readonly string[];
}

const SALT_CHARACTERS = 32;
const WORD_BYTES = 4;
const WORDS_IN_BLOCK = 8;
const WORDS = 2 ** 32;

export function entriesHashOf({ saleId, saltKey, buyers }: DrawTruth): string {
  const lines = buyers.map((buyer, i) => {
    const entry = `${saleId} ${i + 1} ${buyer}`;
    const mac = createHmac('sha256', Buffer.from(saltKey, 'hex')).update(entry).digest('hex');
    return `${i + 1} ${sha256(`${mac.slice(0, SALT_CHARACTERS)} ${entry}`)}`;
  });
  return sha256([`stockade-draw 1 ${saleId}`, ...lines].map((line) => `${line}\n`).join(''));
}

/** @returns by number, from index 1 on */
export function ranksOf(draw: DrawTruth): readonly number[] {
  const words = wordsOf(draw);
  const order = draw.buyers.map((_, i) => i + 1);
  for (let bound = order.length; bound >= 2; bound--) {
    let word = words.next().value;
    while (word >= Math.floor(WORDS / bound) * bound) word = words.next().value;
    const [j, last] = [word % bound, bound - 1];
    [order[j], order[last]] = [order[last]!, order[j]!];
  }
  const ranks: number[] = [];
  for (const [i, number] of order.entries()) ranks[number] = i + 1;
  return ranks;
}

function* wordsOf(draw: DrawTruth): Generator<number, never> {
  const hash = Buffer.from(entriesHashOf(draw), 'hex');
  for (let k = 0; ; k++) {
    const counter = Buffer.alloc(WORD_BYTES);
    counter.writeUInt32BE(k);
    const block = createHmac('sha256', Buffer.from(draw.seed, 'hex'))
      .update(Buffer.concat([hash, counter]))
      .digest();
    for (let i = 0; i < WORDS_IN_BLOCK; i++) yield block.readUInt32BE(i * WORD_BYTES);
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
