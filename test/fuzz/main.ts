/** `npm run fuzz` (docs/contributing/testing.md). It starts its own servers and stops them. */
import { randomInt } from 'node:crypto';
import { Command, InvalidArgumentError } from 'commander';
import { startTestNode } from '../support/nodes/node.ts';
import { createDatabase } from '../support/servers/create-database.ts';
import { PostgresServer } from '../support/servers/postgres-server.ts';
import { RedisServer } from '../support/servers/redis-server.ts';
import { type FuzzReport, fuzz } from './fuzz.ts';
import { Target } from './target.ts';

const MAX_SEED = 2 ** 31 - 1;

function whole(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('must be a whole number');
  return Number(text);
}

const options = new Command('npm run fuzz --')
  .description('Sends requests, made from docs/openapi*.json and corrupted, to both ports of a node.')
  .option('--runs <requests>', 'requests to send', whole, 20_000)
  .option('--seed <number>', 'draws the same requests in the same order', whole)
  .option('--path <path>', 'runs one case again, as a failure has printed it')
  .option('--json', 'prints one JSON object')
  .parse(process.argv)
  .opts<{ runs: number; seed?: number; path?: string; json?: boolean }>();
const seed = options.seed ?? randomInt(MAX_SEED);
const began = performance.now();

await using redis = await RedisServer.start();
await using postgres = await PostgresServer.start();
await using node = await startTestNode({
  redisUrl: redis.url,
  databaseUrl: await createDatabase(postgres.url),
  env: { WORKERS: '2', PUBLIC_PAYMENT: '1', PUBLIC_ORDER_NOTES: '1' },
});
const target = new Target(node);
const report = await fuzz(target, { seed, requests: options.runs, path: options.path });
const unsound = report.failure ? undefined : await target.assertSound().then(() => undefined, String);
const seconds = Math.round((performance.now() - began) / 1_000);
if (options.json) console.log(JSON.stringify({ seed, seconds, ...report, unsound }));
else print(report);
process.exitCode = report.failure || unsound !== undefined ? 1 : 0;

function print({ requests, connections, answers, failure }: FuzzReport): void {
  console.log(`seed ${seed}: ${requests} requests on ${connections} connections in ${seconds} s`);
  for (const [answer, count] of Object.entries(answers))
    console.log(`${String(count).padStart(9)}  ${answer}`);
  if (failure) {
    console.log(`\nFailed: ${failure.what}\n\n${JSON.stringify(failure.sessions, null, 1)}\n`);
    console.log(`Again: npm run fuzz -- --seed ${seed} --path ${failure.path}`);
  } else console.log(unsound ?? 'The node is up, a purchase works, and verify found every sale in order.');
}
