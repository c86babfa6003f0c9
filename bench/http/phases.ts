/** The phases of a round, and the answer that each must get. */

export type SellingName = 'soldOut' | 'accepted' | 'committed';

export interface SellingPhase {
  readonly name: SellingName;
  readonly title: string;
  /** The outcome that every request of the phase must have. */
  readonly outcome: string;
  /**
   * The stock of the phase's sale: enough never to sell out, or so little that it is sold out before the phase
   * begins.
   */
  readonly stock: number;
  readonly prefer: string;
  /**
   * A node without stores does not have this phase: it answers when the order is in its database, whatever a buyer prefers, because
   * nothing else would survive its end.
   */
  readonly needsStores?: boolean;
  /** The promised ratio to the echo. */
  readonly bar: number;
}

const NEVER_SOLD_OUT = 50_000_000;

export const SELLING_PHASES: readonly SellingPhase[] = [
  { name: 'soldOut', title: 'sold out (409)', outcome: 'sold_out', stock: 1, prefer: '', bar: 0.97 },
  {
    name: 'accepted',
    title: 'accepted (202)',
    outcome: 'accepted',
    stock: NEVER_SOLD_OUT,
    prefer: 'respond-async',
    needsStores: true,
    bar: 0.65,
  },
  {
    name: 'committed',
    title: 'committed (201)',
    outcome: 'committed',
    stock: NEVER_SOLD_OUT,
    prefer: '',
    bar: 0.45,
  },
];
