/**
 * `POST`, `GET` and `DELETE /v1/sales/{saleId}/place`: a buyer gets a place in the queue of a sale, asks for it, and leaves.
 *
 * What can be refused without I/O is refused first: a rush must not reach Postgres for a sale that has no queue or is over, nor
 * without a purchase token where the sale requires one.
 */
import type { TokenPlace } from '../../../admission/place-token.ts';
import type { PurchaseTokens } from '../../../admission/purchase-token.ts';
import type { SaleRecord } from '../../../engine/contract.ts';
import { SALE_ID_PATTERN } from '../../../engine/limits.ts';
import { monotonicMs } from '../../../lib/monotonic.ts';
import { settled, withTimeout } from '../../../lib/with-timeout.ts';
import type { BuyersQueue } from '../../../queue/buyers/buyers-queue.ts';
import { type JoinRefusal, joinRefusal } from '../../../queue/buyers/join-refusal.ts';
import type { ToldPlace } from '../../../queue/buyers/place-view.ts';
import { type Authenticate, type Identity, refusal } from '../../identity/identity.ts';
import type { AddressOf } from '../../server/client-address.ts';
import type { Exchange, Handler, Observer } from '../../server/exchange.ts';
import { failure } from '../../server/failure.ts';
import { pathIdOf } from '../../server/http-request.ts';
import { parseObject, unknownField } from '../../server/json-object.ts';
import { problem } from '../../server/replies/problem.ts';
import type { CountedReply, PushedReply } from '../../server/replies/reply.ts';
import type { PlaceRoute } from '../../server/request-stats.ts';
import { type ListenerAddress, noRoomFor } from '../../streams/listeners.ts';
import { type Holder, type PlaceSigners, placeReply } from './place-reply.ts';

export interface PlaceHost extends Observer {
  readonly authenticate: Authenticate;
  readonly tokens: PurchaseTokens;
  readonly queueSigners: PlaceSigners;
  readonly queue: Pick<BuyersQueue, 'join' | 'look' | 'lookInMemory' | 'leave'>;
  /** The sale's record, if this worker knows the sale already. */
  knownRecord(saleId: string): SaleRecord | undefined;
  /** The sale's record as this node knows it. @throws Busy */
  readRecord(saleId: string): Promise<SaleRecord | undefined>;
  /** A request is answered within this time after all of it has arrived. */
  readonly readDeadlineMs: number;
  /** Called for each answer. @param outcome the state of the place, or the code of the answer */
  placeAnswered(route: PlaceRoute, outcome: string): void;
}

/** Streams of places (live-places.ts), as the route needs them. */
export interface PlaceStreams {
  admits(address: ListenerAddress): boolean;
  listen(holder: Holder, place: ToldPlace, address: ListenerAddress): PushedReply;
}

const GET_TOKEN = 'Get one with POST /v1/sales/{saleId}/tokens';
const UNAVAILABLE = problem('unavailable', {
  detail: 'The queue can’t be read now. Send the request again: a buyer keeps its place.',
});
const PERHAPS_LEFT = problem('unknown', {
  detail: 'The place may have been left. Send the request again: a place that was left stays so.',
});
const BUSY = problem('busy', {
  detail: 'This node has too much to do with queues. Send the request again: a buyer keeps its place.',
});
const UNREAD = { busy: BUSY, failed: UNAVAILABLE };
const FULL = problem('queue_full');
const CROWDED = noRoomFor('place');

export function joinRoute(host: PlaceHost): Handler {
  return (exchange, request) => {
    const saleId = pathIdOf(request);
    const token = request.getHeader('purchase-token');
    const identity = host.authenticate(request);
    exchange.readBody(request, async (body) => {
      if ('refused' in body) return answer(host, exchange, 'join', body.refused);
      const who = await identity;
      if (!('buyerId' in who)) return answer(host, exchange, 'join', refusal(who).reply);
      const asked = { saleId, buyerId: who.buyerId, token, body: body.text };
      answer(host, exchange, 'join', await join(host, asked));
    });
  };
}

function answer(host: PlaceHost, exchange: Exchange, route: PlaceRoute, reply: CountedReply): void {
  exchange.reply(reply);
  host.placeAnswered(route, reply.outcome);
}

const NOT_THEIRS = problem('invalid_request', {
  detail:
    'Place-Token: it was not made for a place of this buyer in this sale, so no place was left. Ask for the place again, or leave the header out.',
});

/**
 * With a place token, most answers cost no read. One that is not valid counts as none. All who wait ask again and again, so an answer
 * from memory is given at once: its promises, and the timer of its deadline, would cost more than the answer.
 */
export function placeRoute(host: PlaceHost): Handler {
  return (exchange, request) => {
    const saleId = pathIdOf(request);
    const token = request.getHeader('place-token');
    const who = host.authenticate(request);
    return who instanceof Promise
      ? who.then((known) => show(host, exchange, known, { saleId, token }))
      : show(host, exchange, who, { saleId, token });
  };
}

function show(
  host: PlaceHost,
  exchange: Exchange,
  who: Identity,
  { saleId, token }: { readonly saleId: string; readonly token: string },
): void | Promise<void> {
  if (!('buyerId' in who)) return answer(host, exchange, 'poll', refusal(who).reply);
  const holder = { saleId, buyerId: who.buyerId };
  const known = tokenPlace(host, holder, token);
  const record = known && host.knownRecord(saleId);
  const place = record && host.queue.lookInMemory(record, known);
  if (!place) return lookUp(host, exchange, holder, known);
  answer(host, exchange, 'poll', placeReply(host.queueSigners, holder, place, known.token));
}

async function lookUp(
  host: PlaceHost,
  exchange: Exchange,
  holder: Holder,
  known: TokenPlace | undefined,
): Promise<void> {
  const found = await looked(host, holder, known);
  answer(host, exchange, 'poll', 'head' in found ? found : placeReply(host.queueSigners, holder, found));
}

function tokenPlace({ queueSigners }: PlaceHost, holder: Holder, token: string) {
  return token === '' ? undefined : queueSigners.places.read(token, holder);
}

/** `GET …/place/events`: the place whenever something has changed for it. */
export function placeEventsRoute(
  host: PlaceHost,
  live: PlaceStreams,
  addressOf: AddressOf | undefined,
): Handler {
  return async (exchange, request) => {
    const saleId = pathIdOf(request);
    const token = request.getHeader('place-token');
    const address = addressOf?.(exchange, request);
    const who = await host.authenticate(request);
    if (!('buyerId' in who)) return answer(host, exchange, 'listen', refusal(who).reply);
    const holder = { saleId, buyerId: who.buyerId };
    const found = await looked(host, holder, tokenPlace(host, holder, token));
    if ('head' in found) return answer(host, exchange, 'listen', found);
    if (!live.admits(address)) return answer(host, exchange, 'listen', CROWDED);
    exchange.replyPushed(live.listen(holder, found, address));
    host.placeAnswered('listen', found.state);
  };
}

/**
 * A place token names the place that is left. Without one, the buyer leaves the place that it has when the request is carried out. A wrong one
 * is refused: a buyer that sends a token means one place, and a place that has ended can't be had back.
 */
export function leaveRoute(host: PlaceHost): Handler {
  return async (exchange, request) => {
    const saleId = pathIdOf(request);
    const token = request.getHeader('place-token');
    const who = await host.authenticate(request);
    if (!('buyerId' in who)) return answer(host, exchange, 'leave', refusal(who).reply);
    const holder = { saleId, buyerId: who.buyerId };
    const named = tokenPlace(host, holder, token);
    const isWrong = token !== '' && !named;
    answer(host, exchange, 'leave', isWrong ? NOT_THEIRS : await left(host, holder, named?.number));
  };
}

async function left(host: PlaceHost, holder: Holder, number: number | undefined): Promise<CountedReply> {
  const latestMs = monotonicMs() + host.readDeadlineMs;
  let isLeaving = false;
  const work = async () => {
    const record = await recordOf(host, holder.saleId);
    if (!record) return problem('unknown_sale');
    isLeaving = true;
    const place = await host.queue.leave(record, holder.buyerId, { number, latestMs });
    return place ? placeReply(host.queueSigners, holder, place) : problem('no_place');
  };
  try {
    return await withTimeout(host.readDeadlineMs, work());
  } catch (error) {
    const reply = failure(host, error, { busy: BUSY, failed: isLeaving ? PERHAPS_LEFT : UNAVAILABLE });
    if (isLeaving) await settled(error, latestMs);
    return reply;
  }
}

/** @returns the place, or the answer that there is none */
async function looked(
  host: PlaceHost,
  holder: Holder,
  known: TokenPlace | undefined,
): Promise<ToldPlace | CountedReply> {
  const work = async () => {
    const record = await recordOf(host, holder.saleId);
    if (!record) return problem('unknown_sale');
    return (await host.queue.look(record, holder.buyerId, known)) ?? problem('no_place');
  };
  try {
    return await withTimeout(host.readDeadlineMs, work());
  } catch (error) {
    return failure(host, error, UNREAD);
  }
}

interface Asked {
  readonly saleId: string;
  readonly buyerId: string;
  readonly token: string;
  readonly body: string;
}

async function join(host: PlaceHost, asked: Asked): Promise<CountedReply> {
  const wanted = quantityIn(asked.body);
  if (typeof wanted === 'string') return problem('invalid_request', { detail: wanted });
  const latestMs = monotonicMs() + host.readDeadlineMs;
  try {
    const known = host.knownRecord(asked.saleId);
    const record = known ?? (await withTimeout(host.readDeadlineMs, recordOf(host, asked.saleId)));
    if (!record) return problem('unknown_sale');
    const refused = refusalOf(host, record, asked, wanted);
    if (refused) return refused;
    // It keeps to the deadline by itself. A second timer for each of very many requests would be felt.
    const joined = await host.queue.join(record, { buyerId: asked.buyerId, quantity: wanted }, latestMs);
    if (joined) return 'code' in joined ? refusalReply(joined) : placeReply(host.queueSigners, asked, joined);
    // Perhaps the queue was turned off, or the sale closed, a moment ago.
    const since = joinRefusal(host.knownRecord(asked.saleId) ?? record, wanted);
    return refusalReply(since ?? { code: 'queue_full' });
  } catch (error) {
    return failure(host, error, UNREAD);
  }
}

function refusalOf(
  { tokens }: PlaceHost,
  record: SaleRecord,
  asked: Asked,
  quantity: number,
): CountedReply | undefined {
  const refused = joinRefusal(record, quantity);
  if (refused) return refusalReply(refused);
  if (!record.sale.requireToken) return undefined;
  if (asked.token === '')
    return problem('token_required', { detail: `${GET_TOKEN} and send it in the header Purchase-Token.` });
  const reason = tokens.check(asked.token, asked, record.generation);
  return reason === 'genuine'
    ? undefined
    : problem('token_invalid', { detail: `It is not valid here now. ${GET_TOKEN}.`, reason });
}

function refusalReply(refused: JoinRefusal): CountedReply {
  switch (refused.code) {
    case 'no_queue':
      return problem('no_queue');
    case 'queue_full':
      return FULL;
    case 'limit_reached':
      return problem('limit_reached', { limit: refused.limit, orderIds: refused.orderIds });
    case 'invalid_request':
      return problem('invalid_request', { detail: refused.detail });
    case 'ended': {
      const { endedAt } = refused;
      return problem('ended', endedAt === undefined ? {} : { endedAt: new Date(endedAt).toISOString() });
    }
  }
}

async function recordOf(host: PlaceHost, saleId: string): Promise<SaleRecord | undefined> {
  return SALE_ID_PATTERN.test(saleId) ? host.readRecord(saleId) : undefined;
}

/** @returns what is wrong with the body, as text, if it is not valid */
function quantityIn(text: string): number | string {
  if (text === '') return 1;
  const body = parseObject(text);
  if (typeof body === 'string') return body;
  const fault = unknownField(body, ['quantity'], 'a request for a place');
  if (fault !== undefined) return fault;
  const { quantity = 1 } = body as { quantity?: unknown };
  return Number.isSafeInteger(quantity) && (quantity as number) >= 1
    ? (quantity as number)
    : 'quantity must be a whole number from 1';
}
