/** The demo's clients, in a thread of their own. Each has its own connection and one request in flight. */
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { Client } from 'undici';
import type { CrowdMessage, CrowdOrders } from './crowd.ts';
import { drawBuyers, dueMs, FIRST_BUYER } from './scenario.ts';
import { Tally } from './tally.ts';

/** Longer than any deadline a node may have. */
const ANSWER_TIMEOUT_MS = 35_000;
const PROGRESS_INTERVAL_MS = 100;
const BODY = '{"quantity":1}';

const { url, saleId, scenario, withinMs } = workerData as CrowdOrders;
const ordersPath = `/v1/sales/${saleId}/orders`;
const tally = new Tally();
const say = (message: CrowdMessage) => parentPort!.postMessage(message);

interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Uses `dispatch`, because `request` makes a stream for each body: at this rate that would dominate the measurement. */
function ask(
  client: Client,
  method: 'GET' | 'POST',
  path: string,
  headers = {},
  body?: string,
): Promise<Reply> {
  return new Promise((resolve) => {
    let status = 0;
    let text = '';
    client.dispatch(
      { method, path, headers, body: body ?? null },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, statusCode) => {
          status = statusCode;
        },
        onResponseData: (_controller, chunk) => {
          text += chunk;
        },
        onResponseEnd: () => resolve({ status, body: text }),
        onResponseError: () => resolve({ status: 0, body: '' }),
      },
    );
  });
}

async function buy(client: Client, buyer: number): Promise<void> {
  const headers = { 'x-buyer-id': String(FIRST_BUYER + buyer), 'content-type': 'application/json' };
  const start = performance.now();
  const { status, body } = await ask(client, 'POST', ordersPath, headers, BODY);
  tally.add(buyer, status, body, performance.now() - start);
}

async function run(): Promise<void> {
  const buyers = drawBuyers(scenario);
  const timeouts = { headersTimeout: ANSWER_TIMEOUT_MS, bodyTimeout: ANSWER_TIMEOUT_MS };
  const clients = Array.from(
    { length: scenario.concurrency },
    () => new Client(url, { pipelining: 1, ...timeouts }),
  );
  // Connections are made before the clock starts.
  const firstAnswers = await Promise.all(clients.map((client) => ask(client, 'GET', `/v1/sales/${saleId}`)));
  const refusal = firstAnswers.find(({ status }) => status !== 200);
  if (refusal) throw new Error(`the node answers ${refusal.status || 'nothing'} to GET /v1/sales/${saleId}`);

  const tell = () => say({ kind: 'progress', progress: tally.progress });
  const ticker = setInterval(tell, PROGRESS_INTERVAL_MS);
  const start = performance.now();
  // Client k sends the requests k, k + concurrency, k + 2 concurrency …
  await Promise.all(
    clients.map(async (client, k) => {
      for (let i = k; i < buyers.length; i += clients.length) {
        if (withinMs !== undefined)
          await delay(start + dueMs(i / buyers.length, withinMs) - performance.now());
        await buy(client, buyers[i]!);
      }
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  clearInterval(ticker);
  tell();
  say({ kind: 'done', result: tally.result(seconds) });
  await Promise.all(clients.map((client) => client.destroy()));
}

await run();
