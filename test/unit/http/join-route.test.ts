/** What a buyer is answered who gets no place. */
import { expect, test } from 'vitest';
import type { SaleRecord } from '../../../src/engine/contract.ts';
import { joinRoute } from '../../../src/http/public/place/place-route.ts';
import type { Reply } from '../../../src/http/server/replies/reply.ts';

const NOW = Date.now();
const queue = { order: 'fifo', offerSeconds: 60, presenceSeconds: 30, maxWaiting: 1, fit: 'wait' };
const record = (part: object, state = 'open') =>
  ({
    state,
    sale: { id: 'web', perBuyerLimit: 1, startsAt: NOW, queue, ...part },
  }) as unknown as SaleRecord;

/** @param since the record that the node knows after Postgres has given no place */
async function answerTo(since: SaleRecord): Promise<Record<string, unknown>> {
  let known: SaleRecord | undefined = record({});
  const counted: unknown[] = [];
  const host = {
    authenticate: () => ({ buyerId: 'ann' }),
    knownRecord: () => known,
    readDeadlineMs: 1_000,
    placeAnswered: (...answer: unknown[]) => counted.push(answer),
    queue: {
      async join() {
        known = since;
        return undefined;
      },
    },
  };
  const request = { path: '/v1/sales/web/place', getParameter: () => 'web', getHeader: () => '' };
  const { body } = await new Promise<Reply>((reply) => {
    const readBody = (_: unknown, read: (body: { text: string }) => unknown) => void read({ text: '' });
    void joinRoute(host as never)({ reply, readBody } as never, request as never);
  });
  const told = JSON.parse(body);
  expect(counted).toEqual([['join', told.code]]);
  return told;
}

test.each([
  ['the queue is full', record({}), 'queue_full'],
  ['the queue was turned off', record({ queue: undefined }), 'no_queue'],
  ['the sale was closed', record({}, 'closed'), 'ended'],
])('if %s, the answer says so', async (_, since, code) => {
  expect(await answerTo(since)).toMatchObject({ code });
});
