/** `GET /v1/sales/{saleId}`: what a client or a gateway may keep, and for how long. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SaleRecord } from '../../../src/engine/contract.ts';
import { type PublicSale, SaleReads } from '../../../src/http/public/sale-reads.ts';
import { saleRoute } from '../../../src/http/public/sale-route.ts';
import type { Exchange } from '../../../src/http/server/exchange.ts';
import type { HttpRequest } from '../../../src/http/server/http-request.ts';
import type { Reply } from '../../../src/http/server/replies/reply.ts';

const NOON = Date.parse('2026-11-27T12:00:00Z');
const HOUR_MS = 3_600_000;
/** Longer than the route keeps what it has read. */
const LATER_MS = 250;

let now: number;
let reads: number;
let sale: { startsAt: number; endsAt?: number };
let remaining: number | undefined;

beforeEach(() => {
  [now, reads, sale, remaining] = [NOON, 0, { startsAt: NOON - HOUR_MS }, 5];
  vi.spyOn(performance, 'now').mockImplementation(() => now - NOON + HOUR_MS);
  vi.spyOn(Date, 'now').mockImplementation(() => now);
});
afterEach(() => vi.restoreAllMocks());

/** Time goes on, and the next request reads the sale again. lru-cache looks at its clock at most once a millisecond. */
async function readAgain(handler: ReturnType<typeof route>): Promise<void> {
  const before = reads;
  now += LATER_MS;
  await vi.waitFor(async () => {
    await ask(handler);
    expect(reads).toBe(before + 1);
  });
}

const found = (): PublicSale => ({
  record: { sale: { id: 'tickets', title: '', perBuyerLimit: 1, ...sale }, state: 'open' } as SaleRecord,
  remaining,
});

const route = () =>
  saleRoute(
    new SaleReads({
      readSale: async (saleId) => {
        reads++;
        return saleId === 'tickets' ? found() : undefined;
      },
      readDeadlineMs: 1_000,
      fault(error) {
        throw error;
      },
    }),
  );

async function ask(handler: ReturnType<typeof route>, ifNoneMatch = '', saleId = 'tickets') {
  let reply: Reply | undefined;
  const exchange = {
    reply(given: Reply) {
      reply = given;
    },
  } as unknown as Exchange;
  let isCurrent = true;
  const request = {
    getParameter: () => saleId,
    getHeader(name: string) {
      expect(isCurrent, 'the request is valid only within the call').toBe(true);
      return name === 'if-none-match' ? ifNoneMatch : '';
    },
  } as unknown as HttpRequest;
  const done = handler(exchange, request);
  isCurrent = false;
  await done;
  const { head, ...rest } = reply!;
  const headers = Object.fromEntries(
    head.fields.flatMap((name, i) => (i % 2 === 0 ? [[name, head.fields[i + 1]]] : [])),
  );
  return { ...rest, headers };
}

test('an answer has a tag, and a client that has it is not sent it again', async () => {
  const handler = route();
  const first = await ask(handler);
  expect(first).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } });
  const { etag } = first.headers;
  expect(await ask(handler, etag)).toMatchObject({
    ...{ status: 304, body: '' },
    headers: { etag, 'cache-control': 'public, max-age=1' },
  });
  expect((await ask(handler, '"another"')).status).toBe(200);
  expect(reads).toBe(1);
});

test('the tag stays while nothing changes, and changes with the units left', async () => {
  const handler = route();
  const { etag } = (await ask(handler)).headers;
  await readAgain(handler);
  expect((await ask(handler, etag)).status).toBe(304);
  remaining = 4;
  await readAgain(handler);
  const changed = await ask(handler, etag);
  expect(changed.status).toBe(200);
  expect(changed.headers.etag).not.toBe(etag);
  expect(reads).toBe(3);
});

test('it may be kept for a second, but not over the start or the end of the sale, and not without the units left', async () => {
  const lifetime = async (startsInMs: number, endsInMs?: number) => {
    sale = { startsAt: now + startsInMs, ...(endsInMs !== undefined && { endsAt: now + endsInMs }) };
    return (await ask(route())).headers['cache-control'];
  };
  expect(await lifetime(-HOUR_MS)).toBe('public, max-age=1');
  expect(await lifetime(HOUR_MS)).toBe('public, max-age=1');
  expect(await lifetime(1_001)).toBe('public, max-age=1');
  expect(await lifetime(1_000)).toBe('public, max-age=0');
  expect(await lifetime(-HOUR_MS, 1_000)).toBe('public, max-age=0');
  expect(await lifetime(-HOUR_MS, 1_001)).toBe('public, max-age=1');
  expect(await lifetime(-HOUR_MS, -1)).toBe('public, max-age=1');
  remaining = undefined;
  expect(await lifetime(-HOUR_MS)).toBe('public, max-age=0');
});

test('what was read once is shown in the state of the moment', async () => {
  sale = { startsAt: NOON + 100 };
  const handler = route();
  const before = await ask(handler);
  expect(JSON.parse(before.body)).toMatchObject({ state: 'scheduled', remaining: 5 });
  now += 100;
  const after = await ask(handler, before.headers.etag);
  expect(JSON.parse(after.body)).toMatchObject({ state: 'open', remaining: 5 });
  expect(after.headers['cache-control']).toBe('public, max-age=1');
  expect(reads).toBe(1);
});

test('a sale that does not exist has no tag', async () => {
  const answer = await ask(route(), '*', 'another');
  expect(answer).toMatchObject({ status: 404 });
  expect(answer.headers).not.toHaveProperty('etag');
});
