/** Requests of an operator in a shop with a history: every route, and commands, each timed from outside. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { note } from '../../src/cli/terminal/output.ts';
import { BenchFailure } from '../support/failure.ts';
import { rounded } from '../support/figures.ts';
import { median } from '../support/median.ts';
import { StockadeNode } from '../support/stockade-node.ts';
import type { StoreServers } from '../support/stores.ts';
import type { BenchShop } from './shop.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const LIMIT_MS = 60_000;
const ENDED = 'ended-000001';

export interface Timed {
  readonly what: string;
  /** The median of the rounds. */
  readonly ms: number;
}

export interface TimedRoutes {
  /** The slowest first. */
  readonly routes: readonly Timed[];
  /** With the start of Node, which takes most of it. */
  readonly commands: readonly Timed[];
}

type Request = readonly [method: string, path: string, body?: object];

/** @throws BenchFailure if an answer is not a success */
export async function timeRoutes(
  stores: StoreServers,
  shop: BenchShop,
  rounds: number,
): Promise<TimedRoutes> {
  await using node = await StockadeNode.start(stores, {
    workers: 1,
    eventsStreamMax: 0,
    eventsYieldMs: 0,
    databaseUrl: shop.databaseUrl,
    flags: { 'key-prefix': shop.keyPrefix },
  });
  const page = await ask(node, ['GET', '/v1/sales?limit=1000&archived=include']);
  const { next } = JSON.parse(page) as { next?: string };
  const [routes, commands]: [Timed[], Timed[]] = [[], []];
  for (const request of requestsOf(shop, next)) {
    const what = request.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ');
    routes.push(await timed(what, rounds, (round) => ask(node, inRound(request, round, shop))));
  }
  for (const command of commandsOf(shop)) {
    const what = `stockade ${command.join(' ')}`;
    commands.push(await timed(what, rounds, (round) => run(inRound(command, round, shop), stores, shop)));
  }
  const slowestFirst = (a: Timed, b: Timed) => b.ms - a.ms;
  return { routes: routes.sort(slowestFirst), commands: commands.sort(slowestFirst) };
}

/**
 * A sale is made once, and an order is refunded once. So `{n}` is the number of the round, `{buyer}` a buyer that has an order in each
 * sale that sells, and the other words are orders, others in each round. Every second order is unpaid.
 */
function inRound<T>(template: T, round: number, { firstOrder }: BenchShop): T {
  const order = (n: number) => String(firstOrder + BigInt(n));
  const text = JSON.stringify(template)
    .replaceAll('{n}', String(round))
    .replaceAll('{buyer}', `holder-${String(round).padStart(8, '0')}`)
    .replaceAll('{paid}', order(2 * round))
    .replaceAll('{refunded}', order(200 + 2 * round))
    .replaceAll('{unpaid}', order(2 * round + 1))
    .replaceAll('{cancelled}', order(200 + 2 * round + 1));
  return JSON.parse(text) as T;
}

function requestsOf({ selling, firstOrder }: BenchShop, next: string | undefined): Request[] {
  const sale = `/v1/sales/${selling[0]}`;
  const ended = `/v1/sales/${ENDED}`;
  const queue = `${sale}/queue`;
  return [
    ['GET', '/v1/sales'],
    ['GET', '/v1/sales?limit=1000&archived=include'],
    ...(next === undefined ? [] : [['GET', `/v1/sales?archived=include&after=${next}`] as const]),
    ...['open', 'paused', 'closed'].map(
      (state) => ['GET', `/v1/sales?archived=include&state=${state}`] as const,
    ),
    ['GET', '/v1/sales?archived=only'],
    ['GET', sale],
    ['GET', ended],
    ['GET', `${sale}/ledger`],
    ['GET', `${ended}/ledger`],
    ['GET', `${sale}/orders`],
    ['GET', `${sale}/orders?limit=1000&order=oldest`],
    ['GET', `${sale}/orders?status=cancelled`],
    ['GET', `${sale}/orders?reference=none`],
    ['GET', `${ended}/orders`],
    ['GET', `${ended}/orders?buyer=buyer-00000000`],
    ['GET', `${ended}/orders/export?format=csv`],
    ['GET', `/v1/orders/${firstOrder}`],
    ['GET', '/v1/refunds-due'],
    ['GET', `/v1/refunds-due?saleId=${ENDED}`],
    ['GET', '/v1/events/dead'],
    ['POST', '/v1/events/dead/resend'],
    ['GET', '/metrics'],
    ['GET', '/readyz'],
    ['POST', '/v1/sales', { id: 'new-{n}', stock: 100, segments: 8 }],
    ['PATCH', sale, { action: 'pause' }],
    ['PATCH', sale, { action: 'resume' }],
    ['PATCH', sale, { action: 'top-up', units: 1 }],
    ['PATCH', sale, { action: 'withdraw', units: 1 }],
    ['PATCH', sale, { action: 'window', endsAt: '2100-01-01T00:00:00Z' }],
    ['PATCH', sale, { action: 'edit', title: 'Edited {n}' }],
    ['PATCH', sale, { action: 'require-token', requireToken: false }],
    ['POST', `${sale}/rebalance`, { dryRun: true }],
    ['POST', `${sale}/verify`],
    ['POST', `${ended}/verify`],
    ['POST', `${sale}/recover`],
    ['GET', `${sale}/recover`],
    ['PATCH', '/v1/orders/{paid}', { reference: 'cart-{n}' }],
    ['POST', '/v1/orders/{unpaid}/pay', { payType: 'card' }],
    ['POST', '/v1/orders/{cancelled}/cancel'],
    ['POST', '/v1/orders/{paid}/redeem'],
    ['POST', '/v1/orders/{refunded}/refund'],
    ['POST', '/v1/erasures', { buyerId: 'nobody-{n}' }],
    ['POST', '/v1/erasures', { buyerId: '{buyer}' }],
    ['PATCH', sale, { action: 'queue', queue: 'fifo' }],
    ['GET', queue],
    ['GET', `${queue}?count=true`],
    ['GET', `${queue}/places`],
    ['PATCH', queue, { action: 'pause' }],
    ['PATCH', '/v1/sales/new-{n}', { action: 'close' }],
    ['PATCH', '/v1/sales/new-{n}', { action: 'archive' }],
    ['DELETE', '/v1/sales/new-{n}?orders=0'],
    ['GET', '/v1/sales/new-{n}/deletion'],
  ];
}

function commandsOf({ selling, firstOrder }: BenchShop): string[][] {
  const sale = selling[0]!;
  return [
    ['sale', 'list'],
    ['sale', 'list', '--state', 'open'],
    ['sale', 'show', sale],
    ['sale', 'ledger', sale],
    ['sale', 'create', 'made-{n}', '--stock', '100', '--segments', '8'],
    ['sale', 'edit', sale, '--title', 'Edited {n}'],
    ['sale', 'close', 'made-{n}', '--yes'],
    ['sale', 'archive', 'made-{n}', '--yes'],
    ['sale', 'delete', 'made-{n}', '--yes'],
    ['order', 'show', String(firstOrder)],
    ['order', 'list', sale],
    ['order', 'list', ENDED, '--buyer', 'buyer-00000000'],
    ['order', 'edit', '{paid}', '--reference', 'cart-{n}'],
    ['order', 'refunds-due'],
    ['buyer', 'erase', '{buyer}', '--yes'],
    ['events', 'dead'],
    ['queue', 'show', sale],
    ['verify', sale],
    ['verify', ENDED],
  ];
}

async function timed(
  what: string,
  rounds: number,
  work: (round: number) => Promise<unknown>,
): Promise<Timed> {
  const times: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const began = performance.now();
    await work(round);
    times.push(performance.now() - began);
  }
  const ms = median(times);
  note(`${what}: ${ms.toFixed(0)} ms`);
  return { what, ms: rounded(ms, 0) };
}

async function ask(node: StockadeNode, [method, path, body]: Request): Promise<string> {
  const answer = await fetch(`${node.opsUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${node.opsToken}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(LIMIT_MS),
  });
  const text = await answer.text();
  if (!answer.ok) throw new BenchFailure(`${method} ${path} was answered ${answer.status}: ${text}`);
  return text;
}

async function run(command: readonly string[], { redis }: StoreServers, shop: BenchShop): Promise<void> {
  await promisify(execFile)(process.execPath, [MAIN, ...command, '--json'], {
    env: {
      ...process.env,
      DATABASE_URL: shop.databaseUrl,
      REDIS_URL: redis.url,
      KEY_PREFIX: shop.keyPrefix,
    },
    timeout: LIMIT_MS,
    maxBuffer: 2 ** 28,
  });
}
