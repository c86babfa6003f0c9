/** What the listeners of a sale are sent if they begin to listen while its state changes. */
import { afterEach, expect, test, vi } from 'vitest';
import { loadConfig } from '../../../src/config/load-config.ts';
import { LiveSales } from '../../../src/http/public/live-sales.ts';
import { SaleReads, type SaleView } from '../../../src/http/public/sale-reads.ts';
import { KeptReply } from '../../../src/http/server/conditional.ts';
import type { PushedReply } from '../../../src/http/server/replies/reply.ts';
import { Listeners } from '../../../src/http/streams/listeners.ts';
import { publicSale } from '../../../src/node/worker/public-host.ts';

const TIMES = { everyMs: 20, silentMs: 200 };

const viewOf = (remaining: number): SaleView => {
  const body = JSON.stringify({ remaining });
  return { body, reply: new KeptReply('application/json', body), isClosed: false };
};

let replies: PushedReply[] = [];
afterEach(() => {
  for (const reply of replies) reply.ended();
  replies = [];
});

/** A sale whose readings find what `shown` is. */
function liveSale() {
  const source = { shown: viewOf(5), readings: 0 };
  const read = async () => {
    source.readings++;
    return source.shown;
  };
  const live = new LiveSales({ read }, new Listeners(1_000), TIMES);
  /** @returns all that is sent to one more listener: what remains, and `:` for a comment */
  const listen = (view: SaleView, onEvent = () => {}): (number | ':')[] => {
    const sent: (number | ':')[] = [];
    const reply = live.listen('web', view, undefined);
    replies.push(reply);
    const push = (piece: Uint8Array) => {
      const [, remaining] = /"remaining":(\d+)/.exec(String(piece)) ?? [];
      sent.push(remaining === undefined ? ':' : Number(remaining));
      onEvent();
      return true;
    };
    reply.begun({ push, finish: () => {} });
    return sent;
  };
  return { source, listen };
}

const states = (sent: readonly (number | ':')[]) => sent.filter((one) => one !== ':');

test('a state that only a newcomer was sent is corrected if it was gone at the next reading', async () => {
  const { source, listen } = liveSale();
  const first = listen(source.shown);
  const newcomer = listen(viewOf(0));
  await vi.waitUntil(() => newcomer.length > 1);
  expect(newcomer).toEqual([0, 5]);
  const { readings } = source;
  await vi.waitUntil(() => source.readings > readings + 2);
  expect(states(newcomer)).toEqual([0, 5]);
  expect(states(first), 'it knew that').toEqual([5]);
});

test('one that begins to listen while others are told is not sent an older state', async () => {
  const { source, listen } = liveSale();
  const newcomers: (number | ':')[][] = [];
  const onEvent = () => {
    if (source.shown.body !== viewOf(4).body) return;
    source.shown = viewOf(3);
    newcomers.push(listen(source.shown));
  };
  const first = listen(source.shown, onEvent);
  // More than are told at a time.
  const others = Array.from({ length: 200 }, () => listen(source.shown));
  source.shown = viewOf(4);
  await vi.waitUntil(() => others.every((sent) => sent.includes(3)));
  expect(states(first)).toEqual([5, 4, 3]);
  expect(newcomers.map(states)).toEqual([[3]]);
});

test('newcomers that were sent another state do not keep the others from hearing that the stream is alive', async () => {
  const { source, listen } = liveSale();
  const first = listen(source.shown);
  const mix = setInterval(() => listen(viewOf(0)), TIMES.everyMs / 2);
  try {
    await vi.waitUntil(() => first.includes(':'), { timeout: 5 * TIMES.silentMs });
  } finally {
    clearInterval(mix);
  }
  expect(states(first)).toEqual([5]);
});

test('while Redis hangs, a state without what remains is sent, also with the usual deadline of requests', async () => {
  const record = { sale: { id: 'web', startsAt: 0, segments: 1 }, state: 'open', generation: 1 };
  const parts = {
    settings: { requestDeadlineMs: loadConfig({}, {}).requestDeadlineMs },
    engine: { view: async () => ({ record }) },
    backend: { sales: { snapshot: () => new Promise(() => {}) } },
  };
  const reads = new SaleReads({
    readSale: (saleId: string) => publicSale(parts as unknown as Parameters<typeof publicSale>[0], saleId),
    readDeadlineMs: parts.settings.requestDeadlineMs,
    fault: () => {},
  } as unknown as ConstructorParameters<typeof SaleReads>[0]);
  const reply = new LiveSales(reads, new Listeners(1_000)).listen('web', viewOf(5), undefined);
  replies.push(reply);
  const sent: string[] = [];
  const push = (piece: Uint8Array) => sent.push(String(piece)) > 0;
  reply.begun({ push, finish: () => {} });
  await vi.waitUntil(() => sent.filter((piece) => piece.includes('event: sale')).length > 1, {
    timeout: 4_000,
  });
  expect(sent.at(-1)).toContain('"state":"open"');
  expect(sent.at(-1)).not.toContain('remaining');
});
