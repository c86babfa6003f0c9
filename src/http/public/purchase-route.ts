/** `POST /v1/sales/{saleId}/orders`: the hot path. */
import { isOfferToken } from '../../admission/offer-token.ts';
import type { Outcome, Purchase, PurchaseTrace } from '../../engine/contract.ts';
import { RESERVED_PREFIXES } from '../../engine/limits.ts';
import { parseExactly } from '../../engine/sale/exact-json.ts';
import { encodeNote, faultsOf, NO_NOTE, type OrderNote, withTrace } from '../../engine/sale/order-note.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { type Authenticate, type Identity, refusal } from '../identity/identity.ts';
import { type BodyReader, decode, type RefusedBody } from '../server/body.ts';
import type { Exchange, Handler } from '../server/exchange.ts';
import { type HttpRequest, pathIdOf } from '../server/http-request.ts';
import { parseObject, unknownField } from '../server/json-object.ts';
import { problem } from '../server/replies/problem.ts';
import type { ProblemCode } from '../server/replies/problem-kinds.ts';
import { linesOf, type Reply, sentOften } from '../server/replies/reply.ts';
import { KEY_FORM, parseKey } from './idempotency-key.ts';
import { acceptedOffer, type OfferHost } from './offer-purchase.ts';
import { outcomeReply } from './outcome-reply.ts';

/** The engine of the worker (engine/purchase/engine.ts), as this route needs it. */
export interface Seller {
  buy(purchase: Purchase, done: (outcome: Outcome) => void): void;
  /** Whether a purchase from this sale needs a purchase token, or may have an offer's. If not, the route saves reading the header. */
  asksForToken(saleId: string): boolean;
  /** Whether every purchase of this sale would be answered `busy` now. */
  isShedding(saleId: string): boolean;
}

/** The trace of one purchase (traces/purchase-spans.ts), as this route needs it. */
export interface RequestTrace extends PurchaseTrace {
  /** In the form of a `traceparent`. */
  readonly context: string;
  /** The request is answered. */
  ended(end: {
    readonly outcome: string;
    readonly status: number;
    readonly saleId: string;
    readonly orderId?: string | undefined;
  }): void;
}

export interface PurchaseHost extends OfferHost {
  readonly engine: Seller;
  /** Chooses purchases to be traced, by their header `traceparent`; missing: none is. */
  readonly traces?: { begin(traceparent: string): RequestTrace | undefined } | undefined;
  readonly authenticate: Authenticate;
  /** Whether a purchase may have a reference and metadata. */
  readonly publicOrderNotes: boolean;
  /** Whether a node runs whose sync would store an order without them. */
  olderNodesRun(): Promise<boolean>;
  /** Called with the code of every answer. */
  answered(outcome: string, ms: number): void;
}

/** Perhaps the place's own token, which comes in the same answer as the offer's. */
const OTHER_TOKEN = problem('offer_required', {
  detail:
    'Purchase-Token is not the token of an offer. Ask for the place: when it has an offer, send the `token` of that `offer`.',
});
const RESERVED_KEY = `Idempotency-Key must not begin with ${RESERVED_PREFIXES.map((prefix) => `"${prefix}"`).join(' or ')}`;
const BUSY = sentOften(problem('busy'));
/** A note has up to 4,096 bytes of metadata, and a reference. */
const MAX_BYTES = 8_192;
/** Buyers may reach this port, and what the shop reads in its orders must not be a buyer's text. */
const NOTE_REFUSED: RefusedBody = {
  code: 'operators_only',
  refused: problem('operators_only', {
    detail:
      'Nothing was bought, because the purchase has a reference or metadata. Send it without them; the shop stores them at the ops port, or with `stockade order edit`. If only the shop’s own systems can reach the public port, start the nodes with PUBLIC_ORDER_NOTES=1.',
  }),
};
const NOTE_NOT_YET: RefusedBody = {
  code: 'unavailable',
  refused: problem('unavailable', {
    detail:
      'Nothing was bought: nodes of version 0.1.0 run, and would store the order without its reference and metadata. Send the purchase again when they have stopped, or without them.',
  }),
};
const RESPOND_ASYNC = /(^|[,;\s])respond-async($|[,;\s])/i;

export function purchaseRoute(host: PurchaseHost): Handler {
  return (exchange, request) => {
    // Comes before the token is checked and the body is read: a refusal must cost next to nothing.
    const saleId = pathIdOf(request);
    if (host.engine.isShedding(saleId)) {
      exchange.reply(BUSY);
      host.answered('busy', 0);
    } else exchange.readBytes(request, new PurchaseRequest(host, exchange, request, saleId), MAX_BYTES);
  };
}

/** One request. An object costs less than a handful of closures, and there may be tens of thousands of requests a second. */
class PurchaseRequest implements BodyReader, Purchase {
  readonly saleId: string;
  readonly key: string;
  readonly awaitCommit: boolean;
  readonly token: string;
  readonly trace: RequestTrace | undefined;
  buyerId = '';
  quantity = 0;
  note = NO_NOTE;
  readonly #host: PurchaseHost;
  readonly #exchange: Exchange;
  readonly #began = monotonicMs();
  readonly #identity: Identity | Promise<Identity>;
  readonly #isKeyMalformed: boolean;

  /** Reads all that it needs from the request now, because uWebSockets.js reuses the object. */
  constructor(host: PurchaseHost, exchange: Exchange, request: HttpRequest, saleId: string) {
    this.#host = host;
    this.#exchange = exchange;
    this.saleId = saleId;
    const key = parseKey(request.getHeader('idempotency-key'));
    this.key = key ?? '';
    this.#isKeyMalformed = key === undefined;
    const prefer = request.getHeader('prefer');
    this.awaitCommit = prefer === '' || !RESPOND_ASYNC.test(prefer);
    this.token = host.engine.asksForToken(saleId) ? request.getHeader('purchase-token') : '';
    this.trace = host.traces?.begin(request.getHeader('traceparent'));
    if (this.trace) exchange.addLines(linesOf({ traceresponse: this.trace.context }));
    this.#identity = host.authenticate(request);
  }

  body(bytes: Uint8Array): void | Promise<void> {
    const wanted = bytes.length === 0 || isUsual(bytes) ? USUAL : wantedBy(bytes, this.#host);
    if (typeof wanted === 'string') return this.#invalid(wanted);
    if ('refused' in wanted) return this.refused(wanted);
    this.quantity = wanted.quantity;
    this.note = wanted.note;
    const identity = this.#identity;
    if (this.note !== NO_NOTE) return this.#buyNoted(identity);
    if (identity instanceof Promise) return identity.then((who) => this.#buy(who));
    return this.#buy(identity);
  }

  refused({ refused, code }: RefusedBody): void {
    this.#answer(refused, code);
  }

  async #buyNoted(identity: Identity | Promise<Identity>): Promise<void> {
    if (await this.#host.olderNodesRun()) this.refused(NOTE_NOT_YET);
    else await this.#buy(await identity);
  }

  #buy(who: Identity): void | Promise<void> {
    if (!('buyerId' in who)) {
      const { reply, code } = refusal(who);
      this.#answer(reply, code);
    } else if (this.#isKeyMalformed) this.#invalid(KEY_FORM);
    else if (isReserved(this.key)) this.#invalid(RESERVED_KEY);
    else {
      this.buyerId = who.buyerId;
      if (this.token !== '' && isOfferToken(this.token)) return this.#accept();
      if (this.trace) this.note = withTrace(this.note, this.trace.context);
      this.#host.engine.buy(this, (outcome) => this.#settled(outcome));
    }
  }

  async #accept(): Promise<void> {
    const { reply, code, orderId } = await acceptedOffer(this.#host, this);
    this.#answer(reply, code, orderId);
  }

  #settled(outcome: Outcome): void {
    const orderId = 'orderId' in outcome ? outcome.orderId : undefined;
    const isOtherToken = outcome.code === 'offer_required' && this.token !== '';
    this.#answer(isOtherToken ? OTHER_TOKEN : outcomeReply(outcome, this.saleId), outcome.code, orderId);
  }

  #invalid(detail: string): void {
    this.#answer(problem('invalid_request', { detail }), 'invalid_request');
  }

  #answer(reply: Reply, code: Outcome['code'] | ProblemCode, orderId?: string): void {
    this.#exchange.reply(reply);
    this.trace?.ended({ outcome: code, status: reply.status, saleId: this.saleId, orderId });
    this.#host.answered(code, monotonicMs() - this.#began);
  }
}

function isReserved(key: string): boolean {
  return key !== '' && RESERVED_PREFIXES.some((prefix) => key.startsWith(prefix));
}

/** The body that most clients send. It is recognised without decoding. */
const USUAL_BODY = Buffer.from('{"quantity":1}');

interface Wanted {
  readonly quantity: number;
  readonly note: string;
}

const USUAL: Wanted = { quantity: 1, note: NO_NOTE };

/** What a body asks for, or what is wrong with the body. */
function wantedBy(bytes: Uint8Array, host: PurchaseHost): Wanted | string | RefusedBody {
  const decoded = decode(bytes);
  return 'text' in decoded ? parseWanted(decoded.text, host) : decoded;
}

/** Compares byte by byte: for so few bytes, a call into Node would cost more. */
function isUsual(bytes: Uint8Array): boolean {
  if (bytes.length !== USUAL_BODY.length) return false;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== USUAL_BODY[i]) return false;
  return true;
}

const FIELDS: readonly string[] = ['quantity', 'reference', 'metadata'];

function parseWanted(text: string, { publicOrderNotes }: PurchaseHost): Wanted | string | RefusedBody {
  const body = parseObject(text);
  if (typeof body === 'string') return body;
  const wrong = unknownField(body, FIELDS, 'an order');
  if (wrong !== undefined) return wrong;
  const { quantity = 1, ...others } = body as { quantity?: unknown };
  if (!Number.isSafeInteger(quantity) || (quantity as number) < 1)
    return 'quantity must be a whole number from 1';
  if (Object.keys(others).length === 0) return { quantity: quantity as number, note: NO_NOTE };
  if (!publicOrderNotes) return NOTE_REFUSED;
  const { reference, metadata } = parseExactly(text) as OrderNote;
  const note = { reference, metadata };
  const [fault] = faultsOf(note);
  if (fault) return `${fault.field} ${fault.problem}`;
  return { quantity: quantity as number, note: encodeNote(note) };
}
