/** What the listener of a place is sent while the place can't be looked up. */
import { expect, test, vi } from 'vitest';
import type { SaleRecord } from '../../../src/engine/contract.ts';
import { StockadeError } from '../../../src/engine/errors.ts';
import { LivePlaces } from '../../../src/http/public/place/live-places.ts';
import { Listeners } from '../../../src/http/streams/listeners.ts';
import type { ToldPlace } from '../../../src/queue/buyers/place-view.ts';

const place: ToldPlace = { number: 1, quantity: 1, state: 'waiting', reason: undefined, rank: 1, ahead: 0 };
const signers = { places: { issue: () => 'p1' }, offers: { issue: () => 'o1' } };

test('it is told once that nothing is known, and the place again when it can be looked up', async () => {
  const sent: string[] = [];
  let look: () => Promise<ToldPlace> = async () => {
    throw new StockadeError('unavailable', 'not read lately');
  };
  const host = {
    queue: { look: () => look() },
    queueSigners: signers,
    readRecord: async () => ({}) as SaleRecord,
    readDeadlineMs: 1_000,
    fault: () => {},
  };
  const listeners = new Listeners(10);
  const live = new LivePlaces(host as never, listeners);
  const reply = live.listen({ saleId: 'web', buyerId: 'ann' }, place, undefined);
  reply.begun({ push: (piece: Uint8Array) => sent.push(String(piece)) > 0, finish: () => {} } as never);
  const events = () => sent.join('').match(/event: \w+/g);
  expect(events()).toEqual(['event: place']);
  await vi.waitUntil(() => events()!.length > 1, { timeout: 10_000 });
  const told = events()!.length;
  await new Promise((resolve) => setTimeout(resolve, 2_200));
  expect(events()).toEqual(['event: place', 'event: unavailable']);
  expect(told).toBe(2);
  look = async () => place;
  await vi.waitUntil(() => events()!.length > 2, { timeout: 10_000 });
  expect(events()).toEqual(['event: place', 'event: unavailable', 'event: place']);
  reply.ended();
  listeners.stop();
});

test.each([
  ['none', undefined],
  ['another place', { ...place, number: 2 }],
])('its stream ends if the buyer was erased, and has %s now', async (_, found) => {
  const sent: string[] = [];
  const finish = vi.fn();
  const host = {
    queue: { look: async () => found },
    queueSigners: signers,
    readRecord: async () => ({}) as SaleRecord,
    readDeadlineMs: 1_000,
    fault: () => {},
  };
  const listeners = new Listeners(10);
  const live = new LivePlaces(host as never, listeners);
  const reply = live.listen({ saleId: 'web', buyerId: 'ann' }, place, undefined);
  reply.begun({ push: (piece: Uint8Array) => sent.push(String(piece)) > 0, finish } as never);
  await vi.waitUntil(() => finish.mock.calls.length > 0, { timeout: 10_000 });
  expect(sent.at(-1)).toBe('event: end\ndata: {"reason":"no_place"}\n\n');
  reply.ended();
  listeners.stop();
});

test('one that leaves while its place is looked up is not counted as slow', async () => {
  let looked = (_: ToldPlace): void => {};
  let isLookedUp = false;
  const look = () =>
    new Promise<ToldPlace>((resolve) => {
      [looked, isLookedUp] = [resolve, true];
    });
  const host = {
    queue: { look },
    queueSigners: signers,
    readRecord: async () => ({}) as SaleRecord,
    readDeadlineMs: 1_000,
    fault: () => {},
  };
  const listeners = new Listeners(10);
  const live = new LivePlaces(host as never, listeners);
  let hasGone = false;
  const reply = live.listen({ saleId: 'web', buyerId: 'ann' }, place, undefined);
  reply.begun({ push: () => !hasGone, finish: () => {} });
  await vi.waitUntil(() => isLookedUp, { timeout: 10_000 });
  hasGone = true;
  reply.ended();
  looked({ ...place, ahead: 5 });
  await new Promise((resolve) => setImmediate(resolve));
  expect(listeners.counts()).toEqual({ open: 0, refused: 0, slow: 0 });
});

test('one that does not take its event is counted as slow, and the others are told', async () => {
  let ahead = 0;
  const host = {
    queue: { look: async () => ({ ...place, ahead }) },
    queueSigners: signers,
    readRecord: async () => ({}) as SaleRecord,
    readDeadlineMs: 1_000,
    fault: () => {},
  };
  const listeners = new Listeners(10);
  const live = new LivePlaces(host as never, listeners);
  const sent = ['', ''];
  const replies = sent.map((_, i) => {
    const reply = live.listen({ saleId: 'web', buyerId: `buyer-${i}` }, place, undefined);
    const push = (piece: Uint8Array) => {
      sent[i] += String(piece);
      return i > 0 || ahead === 0;
    };
    reply.begun({ push, finish: () => {} });
    return reply;
  });
  ahead = 3;
  await vi.waitUntil(() => sent[1]!.includes('"ahead":3'), { timeout: 10_000 });
  expect(listeners.counts()).toEqual({ open: 2, refused: 0, slow: 1 });
  for (const reply of replies) reply.ended();
});

test('however many listen, nobody hears nothing for long while no place can be looked up', async () => {
  const host = {
    queue: { look: () => new Promise<never>(() => {}) },
    queueSigners: signers,
    readRecord: async () => ({}) as SaleRecord,
    readDeadlineMs: 2_000,
    fault: () => {},
  };
  const listeners = new Listeners(1_000);
  const live = new LivePlaces(host as never, listeners);
  const began = performance.now();
  const heard = Array.from({ length: 320 }, () => Number.NaN);
  const replies = heard.map((_, i) => {
    const reply = live.listen({ saleId: 'web', buyerId: `buyer-${i}` }, place, undefined);
    let isFirst = true;
    const push = () => {
      if (!isFirst) heard[i] ||= performance.now() - began;
      isFirst = false;
      return true;
    };
    reply.begun({ push, finish: () => {} });
    return reply;
  });
  await vi.waitUntil(() => heard.every((ms) => ms > 0), { timeout: 20_000 });
  // uWebSockets.js closes a connection that is silent for eight.
  expect(Math.max(...heard)).toBeLessThan(6_000);
  for (const reply of replies) reply.ended();
});

test('an answer that comes late is not told after a newer one', async () => {
  const looks: ((place: ToldPlace) => void)[] = [];
  const host = {
    queue: { look: () => new Promise<ToldPlace>((resolve) => looks.push(resolve)) },
    queueSigners: signers,
    readRecord: async () => ({}) as SaleRecord,
    readDeadlineMs: 100,
    fault: () => {},
  };
  const live = new LivePlaces(host as never, new Listeners(10));
  const sent: string[] = [];
  const reply = live.listen({ saleId: 'web', buyerId: 'ann' }, place, undefined);
  reply.begun({ push: (piece: Uint8Array) => sent.push(String(piece)) > 0, finish: () => {} });
  await vi.waitUntil(() => looks.length === 2, { timeout: 10_000 });
  for (const [i, ahead] of [
    [1, 3],
    [0, 4],
  ] as const)
    looks[i]!({ ...place, ahead });
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent.join('').match(/"ahead":\d/g)).toEqual(['"ahead":0', '"ahead":3']);
  reply.ended();
});

test('a look that takes little longer than it is waited for makes nobody unsure', async () => {
  let until: Promise<void> | undefined;
  const look = async () => {
    until ??= new Promise((resolve) => setTimeout(resolve, 1_300));
    await until;
    return { ...place, ahead: 3 };
  };
  const host = {
    queue: { look },
    queueSigners: signers,
    readRecord: async () => ({}) as SaleRecord,
    readDeadlineMs: 2_000,
    fault: () => {},
  };
  const live = new LivePlaces(host as never, new Listeners(1_000));
  const sent = Array.from({ length: 200 }, () => '');
  const replies = sent.map((_, i) => {
    const reply = live.listen({ saleId: 'web', buyerId: `buyer-${i}` }, place, undefined);
    const push = (piece: Uint8Array) => {
      sent[i] += String(piece);
      return true;
    };
    reply.begun({ push, finish: () => {} });
    return reply;
  });
  await vi.waitUntil(() => sent.every((text) => text.includes('"ahead":3')), { timeout: 10_000 });
  expect(sent.filter((text) => text.includes('unavailable'))).toEqual([]);
  for (const reply of replies) reply.ended();
});
