/**
 * What can be seen of a sale whose segments lie on several servers. They can't be read at one instant, so what is said of
 * all of them together has to be proven:
 *
 * - "Nothing is left": the epoch is read, then all segments, then the epoch again. Units that come back or move raise the
 *   epoch when they have arrived and before their record goes; so if it has not changed, units that were nowhere seen were
 *   nowhere. Of a stock that is not empty, what was seen is an upper bound for the moment after.
 * - A snapshot: all are read twice, until nothing has been supplied to any of them in between. Takes do not matter: what is
 *   taken is still there as `taken`.
 */

import type { Reply, SendAll } from '../../redis/send-all.ts';
import type { GenerationRef } from '../contract.ts';
import { NotExecuted, StaleGeneration } from '../errors.ts';
import { decodeCount } from '../redis/codec.ts';
import type { Keys } from '../redis/keys.ts';
import { decodeTransfer, type OpenTransfer } from './transfer-scripts.ts';

const PUBLISHED: ReadonlySet<string | null> = new Set(['open', 'paused', 'closed']);

export interface SegmentSight {
  readonly left: number;
  /** Units that have left it and may not have arrived. */
  readonly out: OpenTransfer | undefined;
}

export interface Stock {
  /** Units left in the whole sale, at most. */
  readonly total: number;
  /** The epoch in which that was so. */
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

  /** In this order; `undefined` where a server does not answer. @throws StaleGeneration if one is not published in that generation */
  async of(sale: GenerationRef, segments: readonly number[]): Promise<(SegmentSight | undefined)[]> {
    const replies = await this.#sendAll(
      segments.map((segment) => {
        const { segment: key } = this.#keys.segment({ saleId: sale.saleId, segment });
        return ['hmget', key, 'generation', 'state', 'left', 'out'] as const;
      }),
    );
    return replies.map((reply) => sightOf(sale, reply));
  }

  /** @returns `undefined` if it can't be said: a server does not answer, or units were moved or given back meanwhile */
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
