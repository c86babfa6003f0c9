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
  const reply = live.listen({ saleId: 'web', buyerId: 'ann' }, place);
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
