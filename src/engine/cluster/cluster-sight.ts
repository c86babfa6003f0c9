/**
 * Observes a sale whose segments lie on several servers. They can't be read at one instant, so a statement about all
 * of them needs a proof:
 *
 * - "Nothing is left": read the epoch, then all segments, then the epoch again. Units that return or move raise the
 *   epoch after they have arrived and before their record is removed. So if the epoch is unchanged, units that were
 *   not seen do not exist. If the stock is not empty, the sum is an upper bound for the moment after the reads.
 * - A snapshot: read all segments repeatedly, until no units were supplied to any of them between two reads. Takes
 *   don't matter: the taken units still count as `taken`.
 */

import type { Reply, SendAll } from '../../redis/send-all.ts';
import type { GenerationRef } from '../contract.ts';
import { NotExecuted, StaleGeneration } from '../errors.ts';
import { decodeCount } from '../redis/protocol/codec.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import { decodeTransfer, type OpenTransfer } from './transfer-scripts.ts';

const PUBLISHED: ReadonlySet<string | null> = new Set(['open', 'paused', 'closed']);

export interface SegmentSight {
  readonly left: number;
  /** Units that have left the segment and may not have arrived at their receiver. */
  readonly out: OpenTransfer | undefined;
}

/** Whether a transfer out of this segment is open that can't be finished, because the server of its receiver does not answer. */
export function isStuck({ out }: SegmentSight, sights: readonly (SegmentSight | undefined)[]): boolean {
  return out !== undefined && sights[out.receiver] === undefined;
}

export interface Stock {
  /** Upper bound of the units left in the whole sale. */
  readonly total: number;
  /** The epoch of this observation. */
  readonly epoch: number;
}

export class ClusterSight {
  readonly #sendAll: SendAll;
  readonly #keys: Keys;

  constructor(sendAll: SendAll, keys: Keys) {
    this.#sendAll = sendAll;
    this.#keys = keys;
  }

  /** All segments of a sale. @throws as `of` */
  all(sale: GenerationRef, segments: number): Promise<(SegmentSight | undefined)[]> {
    return this.of(
      sale,
      Array.from({ length: segments }, (_, segment) => segment),
    );
  }

  /**
   * The segments in this order; `undefined` where a server does not answer.
   * @throws StaleGeneration if one is not published in that generation
   */
  async of(sale: GenerationRef, segments: readonly number[]): Promise<(SegmentSight | undefined)[]> {
    const replies = await this.#sendAll(
      segments.map((segment) => {
        const { segment: key } = this.#keys.segment({ saleId: sale.saleId, segment });
        return ['hmget', key, 'generation', 'state', 'left', 'out'] as const;
      }),
    );
    return replies.map((reply) => sightOf(sale, reply));
  }

  /** @returns `undefined` if it is unknown: a server does not answer, or units were moved or returned meanwhile */
  async stock(sale: GenerationRef, segments: number): Promise<Stock | undefined> {
    const epoch = await this.epoch(sale);
    const sights = await this.all(sale, segments);
    let total = 0;
    for (const sight of sights) {
      if (!sight || sight.out) return undefined;
      total += sight.left;
    }
    return (await this.epoch(sale)) === epoch ? { total, epoch } : undefined;
  }

  /** @throws StaleGeneration; NotExecuted if it can't be read */
  async epoch({ saleId, generation }: GenerationRef): Promise<number> {
    const key = this.#keys.sale(saleId);
    const [reply] = await this.#sendAll([['hmget', key, 'epoch', 'generation']]);
    const [epoch, current] = valuesOf(reply!);
    if (current !== String(generation)) throw new StaleGeneration(saleId, generation);
    return decodeCount(epoch);
  }
}

function sightOf(sale: GenerationRef, reply: Reply): SegmentSight | undefined {
  const [error] = reply;
  if (error && error.name !== 'ReplyError') return undefined;
  const [generation, state, left, out] = valuesOf(reply);
  if (generation !== String(sale.generation) || !PUBLISHED.has(state ?? null)) {
    throw new StaleGeneration(sale.saleId, sale.generation);
  }
  return { left: decodeCount(left), out: out ? decodeTransfer(out) : undefined };
}

function valuesOf([error, reply]: Reply): (string | null)[] {
  if (error) throw new NotExecuted(`Redis did not answer: ${error.message}`, error);
  return reply as (string | null)[];
}
