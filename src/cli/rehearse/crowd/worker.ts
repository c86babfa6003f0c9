/**
 * A thread of the crowd. It sends each request when it is due, however slow the answers are, and counts its latency from that
 * time: so a buyer who had to wait for a connection has waited. A buyer who learns nothing definite asks again with the same
 * key, at the next node if there are several.
 */
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { Pool } from 'undici';
import { monotonicMs } from '../../../lib/monotonic.ts';
import { type BuyerTokens, signBuyerToken } from '../../command/buyer-token.ts';
import { seededRandom } from '../../command/seeded-random.ts';
import { dueTimes } from './arrivals.ts';
import {
  add,
  type CrowdMessage,
  type CrowdOrders,
  type CrowdSecond,
  emptySecond,
  isOpen,
  isSettled,
  NO_ANSWER,
  type ToldOrder,
} from './protocol.ts';

/** Longer than any deadline a node may have. */
const ANSWER_TIMEOUT_MS = 35_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A buyer waits this long before it asks again, and each time longer, up to the longest pause. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;
const TOKEN_SECONDS = 7_200;
/** A gateway sends nothing for this time to a node whose connections break. */
const AVOIDED_MS = 2_000;
/** Nobody asks longer than this after the last request was due. */
const PATIENCE_MS = 40_000;
const MAX_CONNECTIONS = 1_000;
const MIN_CONNECTIONS = 32;
const PROGRESS_INTERVAL_MS = 250;
const MAX_IN_TURN = 64;
const BODY = '{"quantity":1}';

const orders = workerData as CrowdOrders;
const path = `/v1/sales/${orders.saleId}/orders`;
const say = (message: CrowdMessage) => parentPort!.postMessage(message);

const seconds: CrowdSecond[] = [];
const told: ToldOrder[] = [];
const unanswered = new Set<string>();
const limited = new Set<string>();
const buyersAsked = new Set<string>();
/** When connections to each of the URLs last broke. */
const brokenAt: number[] = [];
const tokens = new Map<string, string>();
let [sent, ended] = [0, 0];

interface Reply {
  readonly code: string;
  readonly orderId?: string;
  /** Nothing was sent, because nothing listens there. */
  readonly isUnsent?: boolean;
}

/** Uses `dispatch`, because `request` makes a stream for each body: at this rate that would dominate. */
function ask(pool: Pool, headers: Record<string, string>): Promise<Reply> {
  return new Promise((resolve) => {
    let status = 0;
    let text = '';
    pool.dispatch(
      { method: 'POST', path, headers, body: BODY },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, statusCode) => {
          status = statusCode;
        },
        onResponseData: (_controller, chunk) => {
          text += chunk;
        },
        onResponseEnd: () => resolve(replyOf(status, text)),
        onResponseError: (_controller, error) =>
          resolve({ code: 'broken', isUnsent: (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' }),
      },
    );
  });
}

function replyOf(status: number, text: string): Reply {
  try {
    const body = JSON.parse(text) as { code?: unknown; status?: unknown; orderId?: unknown };
    if ((status === 201 || status === 202) && typeof body.orderId === 'string')
      return { code: String(body.status), orderId: body.orderId };
    if (typeof body.code === 'string') return { code: body.code };
  } catch {
    // A gateway answers with a page: it is counted by its status.
  }
  // A gateway that has lost its node.
  return { code: status >= 500 ? 'broken' : `http_${status}` };
}

async function buy(pools: readonly Pool[], i: number, dueAt: number, giveUpAt: number): Promise<void> {
  const buyerId = `rehearsal-${i % orders.buyers}`;
  buyersAsked.add(buyerId);
  const second = secondOf(dueAt);
  const headers = {
    'content-type': 'application/json',
    'idempotency-key': `rehearsal-${i}`,
    ...identityOf(buyerId),
  };
  let mayBeDone = false;
  for (let attempt = 0; ; attempt++) {
    const place = placeFor(pools.length, i + attempt);
    const { code, orderId, isUnsent } = await ask(pools[place]!, headers);
    if (code === 'broken') brokenAt[place] = monotonicMs();
    // Its buyer notices nothing. This ends: the node is avoided from now on.
    if (isUnsent && isKilled(place) && !isAvoided(placeFor(pools.length, i + attempt + 1))) continue;
    const pauseMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt) * (0.5 + Math.random());
    const isLast = sinceStart() + pauseMs > giveUpAt;
    // After `busy` nothing was done.
    mayBeDone = isOpen(code) ? mayBeDone || (code !== 'busy' && !isUnsent) : mayBeDone && !isSettled(code);
    if (isOpen(code) && !isLast) {
      add(second.repeated, code);
      await delay(pauseMs);
      continue;
    }
    ended++;
    second.latencies.push(sinceStart() - dueAt);
    if (mayBeDone) unanswered.add(buyerId);
    if (code === 'limit_reached') limited.add(buyerId);
    add(second.ended, isOpen(code) ? NO_ANSWER : code);
    if (orderId !== undefined) told.push({ orderId, buyerId, committed: code === 'committed' });
    return;
  }
}

/** The node for this attempt: one whose connections did not break lately, unless those of all nodes did. */
function placeFor(count: number, wanted: number): number {
  for (let i = 0; i < count; i++) {
    const place = (wanted + i) % count;
    if (!isAvoided(place)) return place;
  }
  return wanted % count;
}

const isAvoided = (place: number) =>
  monotonicMs() - (brokenAt[place] ?? Number.NEGATIVE_INFINITY) <= AVOIDED_MS;
const isKilled = (place: number) => orders.killed.includes(orders.urls[place]!);

function secondOf(dueAt: number): CrowdSecond {
  const at = Math.floor(dueAt / 1_000);
  while (seconds.length <= at) seconds.push(emptySecond());
  return seconds[at]!;
}

function identityOf(buyerId: string): Record<string, string> {
  return orders.token === undefined
    ? { 'x-buyer-id': buyerId }
    : { authorization: `Bearer ${tokens.get(buyerId) ?? newToken(orders.token, buyerId)}` };
}

function newToken(keys: BuyerTokens, buyerId: string): string {
  const token = signBuyerToken(keys, buyerId, TOKEN_SECONDS);
  tokens.set(buyerId, token);
  return token;
}

// All threads know the same times.
const due = dueTimes(orders.crowding, seededRandom(orders.seed));
const share = orders.crowding.rate / orders.parts / orders.urls.length;
const pools = orders.urls.map(
  (url) =>
    new Pool(url, {
      connections: Math.min(MAX_CONNECTIONS, Math.max(MIN_CONNECTIONS, Math.ceil(share))),
      pipelining: 1,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      headersTimeout: ANSWER_TIMEOUT_MS,
      bodyTimeout: ANSWER_TIMEOUT_MS,
    }),
);
const sinceStart = () => monotonicMs() - orders.startAtMs;
const giveUpAt = orders.crowding.seconds * 1_000 + PATIENCE_MS;
const tell = () => say({ kind: 'progress', progress: { sent, ended, orders: told.length } });
const ticker = setInterval(tell, PROGRESS_INTERVAL_MS);
const underWay: Promise<void>[] = [];
let inTurn = 0;
for (let i = orders.part; i < due.length; i += orders.parts) {
  const dueAt = due[i]!;
  while (sinceStart() < dueAt) await delay(Math.max(1, Math.min(50, dueAt - sinceStart())));
  // A crowd that is late must not send all at once: it would read no answers meanwhile.
  if (++inTurn % MAX_IN_TURN === 0) await turn();
  const second = secondOf(dueAt);
  second.due++;
  second.lateMs = Math.max(second.lateMs, sinceStart() - dueAt);
  sent++;
  underWay.push(buy(pools, i, dueAt, giveUpAt));
}
// Requests also wait for a connection, and a node may hold each connection until its answer is given up.
const limit = setTimeout(closePools, giveUpAt - sinceStart());
await Promise.all(underWay);
clearTimeout(limit);
clearInterval(ticker);
tell();
say({
  kind: 'done',
  result: {
    ...{ seconds, told, unanswered: [...unanswered], limited: [...limited], buyersAsked: [...buyersAsked] },
  },
});
await closePools();

function closePools(): Promise<unknown> {
  return Promise.all(pools.map((pool) => pool.destroy()));
}
