/**
 * Divides the sales among the syncs of a shop by number. Each sync tells how many it has. From these numbers all syncs make the
 * same plan, which is empty if any two of them differ by one sale at most. A sync that owes sales to another one hands them
 * over when that one has told its news: it was alive a moment ago.
 *
 * States of a sale that changes hands, crash points, and rejected ideas: docs/internals/sharing-sales.md.
 */
import { randomBytes } from 'node:crypto';
import type { SyncChannel, SyncNews } from '../engine/contract.ts';
import { MAX_HANDED_OVER } from '../engine/limits.ts';
import { planMoves } from '../engine/sale/transfer-plan.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { HeldSales } from './held/held-sales.ts';

const TELL_EVERY_MS = 1_000;
/** A sync that was not heard for this time no longer counts. */
const FORGET_MS = 5_000;
/** A sync gets sales with its second news. By then, all others have told theirs, so the plan is complete. */
const MEET_MS = TELL_EVERY_MS / 2;
/** For this long after a hand-over, the receiver's news may lack the sales: the receiver may have sent the news before it got them. */
const CROSSING_MS = 1_000;

/** Another sync. */
interface Peer {
  /** With those that were handed over to it since its last news. */
  readonly sales: number;
  readonly metMs: number;
  readonly heardMs: number;
  /** When sales were last handed over to it. */
  readonly handedOverMs: number;
}

export class SaleShares {
  readonly name = randomBytes(8).toString('hex');
  readonly #channel: SyncChannel | undefined;
  readonly #sales: Pick<HeldSales, 'count' | 'handOver' | 'takeReleased'>;
  readonly #due: () => void;
  readonly #peers = new Map<string, Peer>();
  /** Syncs that have told their news since the last call of `advance`. */
  readonly #speakers = new Set<string>();
  /** Sales that others have released for this sync. */
  readonly #arriving = new Set<string>();
  #tellAtMs = 0;

  /**
   * @param channel `undefined`: there is no other sync
   * @param due called when `advance` has something to do
   */
  constructor(
    channel: SyncChannel | undefined,
    sales: Pick<HeldSales, 'count' | 'handOver' | 'takeReleased'>,
    due: () => void,
  ) {
    this.#channel = channel;
    this.#sales = sales;
    this.#due = due;
  }

  hear({ from, sales, handedOver }: SyncNews): void {
    if (from === this.name) return;
    const heardMs = monotonicMs();
    this.#forget(heardMs);
    const known = this.#peers.get(from) ?? { sales, metMs: heardMs, handedOverMs: Number.NEGATIVE_INFINITY };
    const isCrossing = sales < known.sales && heardMs < known.handedOverMs + CROSSING_MS;
    this.#peers.set(from, { ...known, heardMs, ...(!isCrossing && { sales }) });
    if (!isCrossing && heardMs >= known.metMs + MEET_MS) this.#speakers.add(from);
    if (handedOver?.to === this.name) for (const saleId of handedOver.saleIds) this.#arriving.add(saleId);
    else if (handedOver) this.#credit(handedOver.to, handedOver.saleIds.length);
    if (this.#arriving.size > 0 || (this.#speakers.has(from) && this.#owedTo(from) > 0)) this.#due();
  }

  /**
   * Takes the sales that were released for this sync, hands over what it owes, and tells its news. The loop calls it, so that
   * nothing is being read.
   * @param settled awaited before sales leave the loop: then none of their orders are being applied or announced
   */
  async advance(settled: () => Promise<void>): Promise<void> {
    if (this.#arriving.size > 0) {
      const saleIds = [...this.#arriving];
      this.#arriving.clear();
      await this.#sales.takeReleased(saleIds);
      this.#tell();
    }
    const speakers = [...this.#speakers];
    this.#speakers.clear();
    for (const speaker of speakers) await this.#handOver(speaker, settled);
    if (monotonicMs() >= this.#tellAtMs) this.#tell();
  }

  async #handOver(to: string, settled: () => Promise<void>): Promise<void> {
    if (this.#owedTo(to) === 0) return;
    await settled();
    // A batch may have ended with the release of its sales.
    const saleIds = await this.#sales.handOver(Math.min(this.#owedTo(to), MAX_HANDED_OVER));
    if (saleIds.length === 0) return;
    this.#credit(to, saleIds.length);
    this.#tell({ to, saleIds });
  }

  #credit(to: string, sales: number): void {
    const peer = this.#peers.get(to);
    if (peer) this.#peers.set(to, { ...peer, sales: peer.sales + sales, handedOverMs: monotonicMs() });
  }

  /** How many sales this sync must hand over to the sync `to`. */
  #owedTo(to: string): number {
    const own = { name: this.name, sales: this.#count };
    const others = [...this.#peers].map(([name, { sales }]) => ({ name, sales }));
    // Sorted, so that all syncs make the same plan.
    const syncs = [own, ...others].sort((a, b) => (a.name < b.name ? -1 : 1));
    const moves = planMoves(syncs.map(({ sales }) => sales));
    return moves.find((move) => syncs[move.from] === own && syncs[move.to]!.name === to)?.units ?? 0;
  }

  #forget(nowMs: number): void {
    for (const [name, { heardMs }] of this.#peers) if (heardMs < nowMs - FORGET_MS) this.#peers.delete(name);
  }

  get #count(): number {
    return this.#sales.count + this.#arriving.size;
  }

  #tell(handedOver?: SyncNews['handedOver']): void {
    this.#tellAtMs = monotonicMs() + TELL_EVERY_MS;
    this.#channel?.tell({ from: this.name, sales: this.#count, ...(handedOver && { handedOver }) });
  }
}
