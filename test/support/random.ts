/** Random values that a seed repeats: mulberry32, as good as tests need. */
export interface Random {
  /** 0 to 1, without 1. */
  unit(): number;
  /** A whole number from `least` to `most`. */
  whole(least: number, most: number): number;
  chance(probability: number): boolean;
  pick<T>(values: readonly T[]): T;
  /** Visible ASCII without spaces, as ids and keys may be. */
  text(least: number, most: number): string;
}

const FIRST_VISIBLE = 0x21;
const LAST_VISIBLE = 0x7e;

export function random(seed: number): Random {
  let state = seed | 0;
  const unit = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (least: number, most: number) => least + Math.floor(unit() * (most - least + 1));
  return {
    unit,
    whole,
    chance: (probability) => unit() < probability,
    pick: (values) => values[whole(0, values.length - 1)]!,
    text: (least, most) =>
      String.fromCharCode(
        ...Array.from({ length: whole(least, most) }, () => whole(FIRST_VISIBLE, LAST_VISIBLE)),
      ),
  };
}
