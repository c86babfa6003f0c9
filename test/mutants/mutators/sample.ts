/** Draws mutants by a seed: each kind has its share, and within a kind each mutant is equally likely. */
import { random } from '../../support/random.ts';
import { KINDS, type Kind, type Mutant } from '../mutant.ts';

/** Most of the code is TypeScript, but much of the code that moves units is Lua and SQL. */
const SHARES: Readonly<Record<Kind, number>> = { ts: 0.6, lua: 0.2, sql: 0.2 };

export class Sample {
  readonly #left: Map<Kind, Mutant[]>;
  readonly #wanted: Map<Kind, number>;

  /** If a kind has fewer mutants than its share, the other kinds get more. */
  constructor(mutants: readonly Mutant[], size: number, seed: number) {
    const drawn = random(seed);
    this.#left = new Map(
      KINDS.map((kind) => [
        kind,
        shuffled(
          mutants.filter((one) => one.kind === kind),
          drawn.whole,
        ),
      ]),
    );
    this.#wanted = shares(new Map(KINDS.map((kind) => [kind, this.#left.get(kind)!.length])), size);
  }

  /** @yields mutants. If the caller answers `'again'`, the mutant does not count and another of its kind replaces it */
  *[Symbol.iterator](): Generator<Mutant, void, 'again' | undefined> {
    for (const kind of KINDS) {
      const left = this.#left.get(kind)!;
      for (let wanted = this.#wanted.get(kind)!; wanted > 0 && left.length > 0; ) {
        if ((yield left.shift()!) !== 'again') wanted--;
      }
    }
  }
}

/** Shares that add up to `size`, or to all mutants if there are fewer. */
export function shares(available: ReadonlyMap<Kind, number>, size: number): Map<Kind, number> {
  const wanted = new Map<Kind, number>(KINDS.map((kind) => [kind, 0]));
  let open = KINDS.filter((kind) => available.get(kind)! > 0);
  for (let rest = size; rest > 0 && open.length > 0; ) {
    const sum = open.reduce((total, kind) => total + SHARES[kind], 0);
    let given = 0;
    for (const kind of open) {
      const share = Math.max(1, Math.round((rest * SHARES[kind]) / sum));
      const more = Math.min(share, rest - given, available.get(kind)! - wanted.get(kind)!);
      wanted.set(kind, wanted.get(kind)! + more);
      given += more;
    }
    rest -= given;
    open = open.filter((kind) => wanted.get(kind)! < available.get(kind)!);
  }
  return wanted;
}

function shuffled(mutants: readonly Mutant[], whole: (least: number, most: number) => number): Mutant[] {
  const all = [...mutants];
  for (let i = all.length - 1; i > 0; i--) {
    const j = whole(0, i);
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}
