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
    // Sync would load the ended sales into Redis first.
    flags: { 'key-prefix': shop.keyPrefix, sync: 'off' },
  });
  const page = await ask(node, ['GET', '/v1/sales?limit=1000']);
  const { next } = JSON.parse(page) as { next?: string };
  const [routes, commands]: [Timed[], Timed[]] = [[], []];
  for (const request of requestsOf(shop, next)) {
    const what = `${request[0]} ${request[1]}${request[2] ? ` ${JSON.stringify(request[2])}` : ''}`;
    routes.push(await timed(what, rounds, () => ask(node, request)));
  }
  for (const command of commandsOf(shop)) {
    commands.push(await timed(`stockade ${command.join(' ')}`, rounds, () => run(command, stores, shop)));
  }
  const slowestFirst = (a: Timed, b: Timed) => b.ms - a.ms;
  return { routes: routes.sort(slowestFirst), commands: commands.sort(slowestFirst) };
}

function requestsOf({ selling, firstOrder }: BenchShop, next: string | undefined): Request[] {
  const sale = `/v1/sales/${selling[0]}`;
  const ended = `/v1/sales/${ENDED}`;
  return [
    ['GET', '/v1/sales'],
    ['GET', '/v1/sales?limit=1000'],
    ...(next === undefined ? [] : [['GET', `/v1/sales?after=${next}`] as const]),
    ...['open', 'paused', 'closed'].map((state) => ['GET', `/v1/sales?state=${state}`] as const),
    ['GET', sale],
    ['GET', ended],
    ['GET', `${sale}/ledger`],
    ['GET', `${ended}/ledger`],
    ['GET', `${sale}/orders`],
    ['GET', `${sale}/orders?limit=1000&order=oldest`],
    ['GET', `${sale}/orders?status=cancelled`],
    ['GET', `${ended}/orders`],
    ['GET', `${ended}/orders?buyer=buyer-00000000`],
    ['GET', `/v1/orders/${firstOrder}`],
    ['GET', '/v1/refunds-due'],
    ['GET', `/v1/refunds-due?saleId=${ENDED}`],
    ['GET', '/v1/events/dead'],
    ['GET', '/metrics'],
    ['GET', '/readyz'],
    ['PATCH', sale, { action: 'pause' }],
    ['PATCH', sale, { action: 'resume' }],
    ['PATCH', sale, { action: 'top-up', units: 1 }],
    ['PATCH', sale, { action: 'withdraw', units: 1 }],
    ['POST', `${sale}/rebalance`, { dryRun: true }],
    ['POST', `${sale}/verify`],
    ['POST', `${sale}/recover`],
    ['GET', `${sale}/recover`],
    ['POST', `/v1/orders/${firstOrder}/redeem`],
  ];
}

function commandsOf({ selling, firstOrder }: BenchShop): string[][] {
  return [
    ['sale', 'list'],
    ['sale', 'list', '--state', 'open'],
    ['sale', 'show', selling[0]!],
    ['sale', 'ledger', selling[0]!],
    ['order', 'show', String(firstOrder)],
    ['order', 'refunds-due'],
    ['verify', selling[0]!],
  ];
}

async function timed(what: string, rounds: number, work: () => Promise<unknown>): Promise<Timed> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    await work();
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
