/** The four phases of a round, and what each of them must be answered. */

type Outcome = 'soldOut' | 'accepted' | 'committed';
export type PhaseName = 'echo' | Outcome | `${Outcome}OverNodeHttp`;

export interface SellingPhase {
  readonly name: Exclude<PhaseName, 'echo'>;
  /** A second node, whose HTTP_SERVER is `node`. */
  readonly isOverNodeHttp?: boolean;
  readonly title: string;
  /** The outcome that every request of the phase must have. */
  readonly outcome: string;
  /** Of the phase's sale: enough never to sell out, or so little that it is gone before the phase begins. */
  readonly stock: number;
  readonly prefer: string;
  /** What the product promises of the ratio to the echo, if anything. */
  readonly bar?: number;
}

const NEVER_SOLD_OUT = 50_000_000;

const SELLING_PHASES: readonly (SellingPhase & { readonly name: Outcome })[] = [
  { name: 'soldOut', title: 'sold out (409)', outcome: 'sold_out', stock: 1, prefer: '', bar: 0.9 },
  {
    name: 'accepted',
    title: 'accepted (202)',
    outcome: 'accepted',
    stock: NEVER_SOLD_OUT,
    prefer: 'respond-async',
    bar: 0.5,
  },
  {
    name: 'committed',
    title: 'committed (201)',
    outcome: 'committed',
    stock: NEVER_SOLD_OUT,
    prefer: '',
    bar: 0.35,
  },
];

/** Those of a run. */
export function sellingPhases({ nodeHttp }: { readonly nodeHttp: number }): readonly SellingPhase[] {
  if (nodeHttp === 0) return SELLING_PHASES;
  const second = SELLING_PHASES.map(({ bar: _, ...phase }) => ({
    ...phase,
    name: `${phase.name}OverNodeHttp` as const,
    title: `${phase.title} over node:http`,
    isOverNodeHttp: true,
  }));
  return [...SELLING_PHASES, ...second];
}
