/**
 * One person of a crowd, with a queue or without:
 *
 *   with      takes a place ──asks again and again──> offered ──accepts──┐
 *   without   tries to buy, again and again ─────────────────────────────┴──> has an order ──> pays, or not
 *
 * Who was told that nothing is left gives up after some time, or stays to the end.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Answered } from '../../support/crowd/line.ts';
import type { Askers } from './askers.ts';

export interface PersonPlan {
  readonly askers: Askers;
  readonly saleId: string;
  readonly buyerId: string;
  readonly hasQueue: boolean;
  readonly pays: boolean;
  readonly arrivesAfterMs: number;
  readonly askEveryMs: number;
  /** From an offer that is seen to its acceptance, and from an order to its payment. */
  readonly thinksMs: number;
  /** From the first bad news on; `undefined`: stays to the end. */
  readonly patienceMs: number | undefined;
  /** By `performance.now()`. */
  readonly endsAt: number;
  /** Ends it earlier. */
  readonly ending?: AbortSignal;
}

export interface PersonStory {
  /** By `performance.now()`, as all times here. */
  readonly arrivedAt: number;
  /** Of its first request, or its place in a queue: later people have greater ones. Infinite while it has no place. */
  order: number;
  /** When it was first told that nothing is left, or nothing can come to it. */
  toldAt: number | undefined;
  /** It was told of an offer. */
  wasOffered: boolean;
  /** When it got an order. */
  gotAt: number | undefined;
  orderId: string | undefined;
  hasPaid: boolean;
  /** It gave up before the end. */
  gaveUp: boolean;
  endedAt: number;
  /** From the request that accepts an offer, or buys, to its `201`. */
  gotMs: number | undefined;
  /** Answers that nobody expects, by code. */
  readonly odd: Record<string, number>;
}

interface ToldPlace {
  readonly number: number;
  readonly state: string;
  readonly placeToken: string;
  readonly offer?: { readonly token: string; readonly quantity: number };
}

let arrivals = 0;

export async function live(plan: PersonPlan): Promise<PersonStory> {
  await delay(plan.arrivesAfterMs);
  const now = performance.now();
  const story: PersonStory = {
    ...{
      arrivedAt: now,
      order: arrivals++,
      toldAt: undefined,
      wasOffered: false,
      gotAt: undefined,
      orderId: undefined,
    },
    ...{ hasPaid: false, gaveUp: false, endedAt: now, gotMs: undefined, odd: {} },
  };
  await (plan.hasQueue ? queueUp(plan, story) : tryToBuy(plan, story));
  if (story.orderId !== undefined && plan.pays) await pay(plan, story);
  story.endedAt = Math.min(performance.now(), plan.endsAt);
  return story;
}

async function queueUp(plan: PersonPlan, story: PersonStory): Promise<void> {
  const { askers, saleId, buyerId } = plan;
  const path = `/v1/sales/${saleId}/place`;
  let token: string | undefined;
  story.order = Number.POSITIVE_INFINITY;
  while (goesOn(plan, story)) {
    const headers = token === undefined ? {} : { 'Place-Token': token };
    const answered = await askers.ask({
      method: token === undefined ? 'POST' : 'GET',
      path,
      buyerId,
      headers,
    });
    if (answered.code === '200') {
      const place = JSON.parse(answered.body) as ToldPlace;
      token = place.placeToken;
      story.order = place.number;
      if (place.state === 'hopeless') story.toldAt ??= performance.now();
      if (place.offer) story.wasOffered = true;
      if (place.offer) return accept(plan, story, place.offer);
      if (place.state !== 'waiting' && place.state !== 'hopeless') return odd(story, place.state);
    } else odd(story, answered.code);
    await rest(plan);
  }
}

async function accept(
  plan: PersonPlan,
  story: PersonStory,
  offer: NonNullable<ToldPlace['offer']>,
): Promise<void> {
  await delay(plan.thinksMs);
  const headers = { 'Purchase-Token': offer.token, 'Content-Type': 'application/json' };
  const body = { quantity: offer.quantity };
  // An answer that says nothing is asked for again, until the offer is over.
  for (let tries = 0; tries < 5 && story.orderId === undefined; tries++) {
    const answered = await buy(plan, story, headers, body);
    if (answered.code === 'offer_ended') return odd(story, 'offer_ended');
  }
}

async function tryToBuy(plan: PersonPlan, story: PersonStory): Promise<void> {
  while (goesOn(plan, story)) {
    const { code } = await buy(plan, story, {}, undefined);
    if (story.orderId !== undefined) return;
    if (code === 'sold_out') story.toldAt ??= performance.now();
    await rest(plan);
  }
}

async function buy(
  { askers, saleId, buyerId }: PersonPlan,
  story: PersonStory,
  headers: Readonly<Record<string, string>>,
  body: object | undefined,
): Promise<Answered> {
  const began = performance.now();
  const path = `/v1/sales/${saleId}/orders`;
  const answered = await askers.ask({ method: 'POST', path, buyerId, headers, ...(body && { body }) });
  if (answered.code === 'committed' || answered.code === 'accepted') {
    story.gotAt = performance.now();
    story.gotMs = story.gotAt - began;
    story.orderId = (JSON.parse(answered.body) as { orderId: string }).orderId;
  } else if (answered.code !== 'sold_out') odd(story, answered.code);
  return answered;
}

async function pay({ askers, buyerId, thinksMs }: PersonPlan, story: PersonStory): Promise<void> {
  await delay(thinksMs);
  const path = `/v1/orders/${story.orderId}/pay`;
  const headers = { 'Content-Type': 'application/json' };
  for (let tries = 0; tries < 5 && !story.hasPaid; tries++) {
    const { code } = await askers.ask({ method: 'POST', path, buyerId, headers, body: { payType: 'card' } });
    story.hasPaid = code === 'paid';
    if (!story.hasPaid) {
      odd(story, code);
      await delay(thinksMs);
    }
  }
}

function goesOn({ endsAt, ending, patienceMs }: PersonPlan, story: PersonStory): boolean {
  const now = performance.now();
  if (now >= endsAt || ending?.aborted) return false;
  story.gaveUp = patienceMs !== undefined && story.toldAt !== undefined && now - story.toldAt >= patienceMs;
  return !story.gaveUp;
}

/** A tenth more or less, so that people do not ask in step. */
async function rest({ askEveryMs, endsAt }: PersonPlan): Promise<void> {
  const ms = askEveryMs * (0.9 + Math.random() * 0.2);
  await delay(Math.max(0, Math.min(ms, endsAt - performance.now())));
}

function odd(story: PersonStory, code: string): void {
  story.odd[code] = (story.odd[code] ?? 0) + 1;
}
