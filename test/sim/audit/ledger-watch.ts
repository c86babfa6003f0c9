/**
 * Checks the ledger for the auditor. A change that was answered as done is in the ledger once, as requested. A refused change
 * has changed nothing. The rows, applied in order, give the present state of the sale.
 */
import type { SaleChange } from '../../../src/engine/sale/sale-change.ts';
import { time } from '../machines/virtual-time.ts';
import type { LedgerRow, Truth } from './books.ts';

interface Asked {
  readonly reason: string;
  readonly change: SaleChange;
  readonly at: number;
  end: 'open' | 'done' | 'refused';
}

/** The change was refused, and will not be made later. */
const REFUSALS = new Set(['insufficient_stock', 'wrong_state', 'invalid_request', 'busy']);

const STATES = {
  pause: { from: ['open'], to: 'paused' },
  resume: { from: ['paused'], to: 'open' },
  close: { from: ['open', 'paused'], to: 'closed' },
} as const;

/** The state of a sale according to the rows of its ledger. */
interface Standing {
  readonly state: string;
  readonly requireToken: boolean;
  /** The number of segments that the sale has, or is to have. */
  readonly segments: number;
}

export class LedgerWatch {
  readonly #fail: (what: string) => never;
  readonly #asked = new Map<string, Asked>();
  /** Every state that the sale was seen in, and since when. */
  readonly #standings: { readonly at: number; readonly standing: Standing }[] = [];
  readonly #unchecked = new Set<Asked>();
  readonly #life: number;
  #begunWith: number | undefined;

  /** @param life see `SaleAuditor.life` */
  constructor(life: number, fail: (what: string) => never) {
    this.#life = life;
    this.#fail = fail;
  }

  /** @returns the reason to give for the change, by which its row is recognized */
  asked(change: SaleChange): string {
    const reason = `life ${this.#life}, change ${this.#asked.size + 1}`;
    this.#asked.set(reason, { reason, change, at: time.now, end: 'open' });
    return reason;
  }

  done(reason: string): void {
    const asked = this.#asked.get(reason)!;
    asked.end = 'done';
    this.#unchecked.add(asked);
  }

  failed(reason: string, code: string | undefined): void {
    if (code !== undefined && REFUSALS.has(code)) this.#asked.get(reason)!.end = 'refused';
  }

  check(truth: Truth): void {
    this.#begunWith ??= truth.segments;
    const standing = this.#follow(truth);
    const before = this.#standings.at(-1)?.standing;
    if (JSON.stringify(before) !== JSON.stringify(standing)) this.#standings.push({ at: time.now, standing });
    for (const row of truth.ledger) this.#checkRow(row, truth);
    for (const asked of this.#unchecked) this.#checkDone(asked, truth);
    this.#unchecked.clear();
  }

  /** Applies the rows one by one. The sale must be as they say. */
  #follow({ ledger, state, requireToken }: Truth): Standing {
    let now: Standing = { state: 'open', requireToken: false, segments: this.#begunWith! };
    for (const { action, detail } of ledger) {
      if (action === 'pause' || action === 'resume' || action === 'close') {
        const { from, to } = STATES[action];
        if (!(from as readonly string[]).includes(now.state) || detail.from !== now.state)
          this.#fail(`P7: the ledger has ${action} of a sale that is ${now.state}, and says ${detail.from}`);
        now = { ...now, state: to };
      } else if (action === 'require-token') {
        if (detail.from !== now.requireToken || detail.to === detail.from)
          this.#fail(
            `P7: the ledger has ${action} from ${detail.from} to ${detail.to}: it was ${now.requireToken}`,
          );
        now = { ...now, requireToken: detail.to === true };
      } else if (action === 'resize') {
        if (detail.from !== now.segments || detail.to === detail.from)
          this.#fail(
            `P7: the ledger has ${action} from ${detail.from} to ${detail.to}: it was ${now.segments}`,
          );
        now = { ...now, segments: Number(detail.to) };
      }
    }
    if (now.state !== state || now.requireToken !== requireToken)
      this.#fail(
        `P7: by the ledger the sale is ${JSON.stringify(now)}; it is ${state}, token ${requireToken}`,
      );
    return now;
  }

  #checkRow({ reason, action, units, detail }: LedgerRow, { ledger }: Truth): void {
    const asked = this.#asked.get(reason);
    if (!asked) return;
    const { change, end } = asked;
    if (ledger.filter((row) => row.reason === reason).length > 1)
      this.#fail(`P7: ${reason}, ${JSON.stringify(change)}, is in the ledger more than once`);
    const wanted =
      change.action === 'top-up' ? change.units : change.action === 'withdraw' ? -change.units : 0;
    const isNone = change.action === 'withdraw' && units === 0;
    if (action !== change.action || (units !== wanted && !isNone))
      this.#fail(`P7: ${JSON.stringify(change)} is in the ledger as ${action} of ${units} units`);
    if (end === 'refused' && units !== 0)
      this.#fail(`P7: ${JSON.stringify(change)} was refused, and ${units} units are in the ledger`);
    if (detail.void === true && units !== 0)
      this.#fail(`P7: ${JSON.stringify(change)} is void, and ${units} units are in the ledger`);
  }

  #checkDone({ reason, change, at }: Asked, { ledger }: Truth): void {
    const row = ledger.find((each) => each.reason === reason);
    const moved = change.action === 'top-up' || change.action === 'withdraw' ? change.units : 0;
    if (moved > 0 ? Math.abs(row?.units ?? 0) !== moved : !row && !this.#wasSo(change, at))
      this.#fail(
        `P7: ${JSON.stringify(change)} was answered as done, and the ledger has ${JSON.stringify(row)}`,
      );
  }

  /** Whether the sale was in the wanted state at any time since `since`. */
  #wasSo(change: SaleChange, since: number): boolean {
    return this.#standings.some(({ standing }, i) => {
      const until = this.#standings[i + 1]?.at ?? Number.POSITIVE_INFINITY;
      return until >= since && isAsWanted(standing, change);
    });
  }
}

function isAsWanted({ state, requireToken, segments }: Standing, change: SaleChange): boolean {
  switch (change.action) {
    case 'pause':
    case 'resume':
    case 'close':
      return state === STATES[change.action].to;
    case 'require-token':
      return requireToken === change.requireToken;
    case 'resize':
      return segments === change.segments;
    default:
      return false;
  }
}
