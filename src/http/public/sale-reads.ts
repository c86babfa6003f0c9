/** Reads sales for everybody. Many ask for the same sale at once, so what was read is kept for a moment. */
import { LRUCache } from 'lru-cache';
import type { QueueSettings, SaleRecord } from '../../engine/contract.ts';
import { SALE_ID_PATTERN } from '../../engine/limits.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { DrawFacts } from '../../queue/buyers/draw-facts.ts';
import { KeptReply } from '../server/conditional.ts';
import type { Observer } from '../server/exchange.ts';
import { failure } from '../server/failure.ts';
import { problem } from '../server/replies/problem.ts';
import type { Reply } from '../server/replies/reply.ts';

export interface SaleHost extends Observer {
  readSale(saleId: string): Promise<PublicSale | undefined>;
  readonly readDeadlineMs: number;
}

export interface PublicSale {
  readonly record: SaleRecord;
  /** `undefined` while the backend can't tell. */
  readonly remaining: number | undefined;
  /** Of a sale whose queue is drawn; `undefined` also while it can't be read. */
  readonly draw?: DrawFacts | undefined;
}

/** A sale as everybody may see it now. */
export interface SaleView {
  /** As JSON, in one line. */
  readonly body: string;
  readonly reply: KeptReply;
  /** An operator has closed it, for good. */
  readonly isClosed: boolean;
}

/** Why a sale can't be shown. */
export interface NoView {
  readonly refusal: Reply;
  /** There is no such sale; otherwise it can't be read now. */
  readonly isUnknown: boolean;
}

/** How old the counter in an answer may be. Buyers read it more often than they buy. */
const REMAINING_TTL_MS = 200;
/** How long browsers and gateways may use an answer without asking. */
const CACHED_BY_OTHERS_MS = 1_000;
export const CACHED_SALES = 1_000;

const UNKNOWN: NoView = { refusal: problem('unknown_sale'), isUnknown: true };
const UNREADABLE: NoView = {
  refusal: problem('unavailable', { detail: 'The sale can’t be read now. Send the request again.' }),
  isUnknown: false,
};
const BUSY: NoView = {
  refusal: problem('busy', { detail: 'The sale was not read. Send the request again.' }),
  isUnknown: false,
};

export class SaleReads {
  readonly #host: SaleHost;
  readonly #cache: LRUCache<string, Read>;

  constructor(host: SaleHost) {
    this.#host = host;
    this.#cache = new LRUCache<string, Read>({
      max: CACHED_SALES,
      ttl: REMAINING_TTL_MS,
      // A lookup whose entry leaves the full cache still answers the requests that wait for it.
      ignoreFetchAbort: true,
      fetchMethod: async (saleId) => new Read(await host.readSale(saleId)),
    });
  }

  /** @param limitMs how long the caller waits, up to the deadline of all reads */
  async read(saleId: string, limitMs = Number.POSITIVE_INFINITY): Promise<SaleView | NoView> {
    if (!SALE_ID_PATTERN.test(saleId)) return UNKNOWN;
    try {
      const ms = Math.min(limitMs, this.#host.readDeadlineMs);
      const read = await withTimeout(ms, this.#cache.fetch(saleId));
      return read?.view() ?? UNKNOWN;
    } catch (error) {
      return failure(this.#host, error, { busy: BUSY, failed: UNREADABLE });
    }
  }
}

/** What was read about a sale, and the view made of it: many ask while it is kept. */
class Read {
  readonly #found: PublicSale | undefined;
  #made: { readonly state: Phase; readonly cacheControl: string; readonly view: SaleView } | undefined;

  constructor(found: PublicSale | undefined) {
    this.#found = found;
  }

  /** @returns `undefined` if there is no such sale */
  view(): SaleView | undefined {
    if (!this.#found) return undefined;
    const now = Date.now();
    const state = phase(this.#found.record, now);
    const cacheControl = cacheControlOf(this.#found, now);
    if (this.#made?.state !== state || this.#made.cacheControl !== cacheControl) {
      const body = JSON.stringify(publicJson(this.#found, state));
      const reply = new KeptReply('application/json', body, {}, cacheControl);
      const isClosed = this.#found.record.state === 'closed';
      this.#made = { state, cacheControl, view: { body, reply, isClosed } };
    }
    return this.#made.view;
  }
}

/** A cache may show the answer for a second, unless it is about to change or lacks something. It is the same for everybody. */
function cacheControlOf({ record: { sale }, remaining }: PublicSale, now: number): string {
  const changesSoon = [sale.startsAt, sale.endsAt].some(
    (at) => at !== undefined && at > now && at <= now + CACHED_BY_OTHERS_MS,
  );
  return `public, max-age=${changesSoon || remaining === undefined ? 0 : CACHED_BY_OTHERS_MS / 1_000}`;
}

function publicJson({ record, remaining, draw }: PublicSale, state: Phase) {
  const { sale } = record;
  return {
    id: sale.id,
    title: sale.title,
    state,
    startsAt: new Date(sale.startsAt).toISOString(),
    endsAt: sale.endsAt === undefined ? undefined : new Date(sale.endsAt).toISOString(),
    perBuyerLimit: sale.perBuyerLimit,
    requireToken: sale.requireToken || undefined,
    queue: sale.queue && queueJson(sale.queue, draw),
    priceMinor: sale.priceMinor,
    faceValueMinor: sale.faceValueMinor,
    currency: sale.currency,
    soldOut: remaining === undefined ? undefined : remaining === 0,
    remaining,
  };
}

function queueJson({ order, offerSeconds, presenceSeconds }: QueueSettings, draw: DrawFacts | undefined) {
  return {
    order,
    offerSeconds,
    presenceSeconds,
    draw: draw && { commitment: draw.commitment, ...draw.drawn },
  };
}

type Phase = 'scheduled' | 'open' | 'paused' | 'ended';

function phase({ sale, state }: SaleRecord, now: number): Phase {
  if (state === 'closed' || (sale.endsAt !== undefined && now >= sale.endsAt)) return 'ended';
  if (now < sale.startsAt) return 'scheduled';
  return state;
}
