/** `stockade rehearse` with faults in the rush, to a node that runs already, and with tokens of buyers. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RunningCli, runCli } from '../support/cli/cli.ts';
import { gravest, namesIn, rehearsalsIn, reportIn, SMALL, stores } from '../support/cli/rehearsals.ts';
import { startTestNode } from '../support/nodes/node.ts';
import { PostgresServer } from '../support/servers/postgres-server.ts';
import { query } from '../support/shop/truth.ts';

/** That of the other tests runs without fsync. */
let postgres: PostgresServer;

beforeAll(async () => {
  postgres = await PostgresServer.start();
});

afterAll(() => postgres[Symbol.asyncDispose]());

test('a node is killed and another is cut off from Redis in the rush: every buyer goes on elsewhere', async () => {
  const env = await stores(postgres);
  const crowd = [
    '--rate',
    '30',
    '--for',
    '10',
    '--stock',
    '1000',
    '--buyers',
    '1000',
    '--good',
    '60000',
    '--json',
  ];
  const { stdout, stderr } = await runCli(['rehearse', ...crowd, '--kill-node', '--cut-redis'], {
    env: { ...env },
  });
  const report = reportIn(stdout);
  // What a starved machine may show besides is no subject here; that the accounts balance is.
  const excused = ['overload', 'redis replicas'];
  expect(
    gravest(report).filter(({ name }) => !excused.includes(name)),
    stderr,
  ).toEqual([]);
  expect(report.remarks).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/one node was killed/),
      expect.stringMatching(/one node was cut off from Redis/),
    ]),
  );
  // Requests that the killed node had not answered are few at this rate, perhaps none. Those to the other last as long as its cut.
  expect(report.totals!.repeated.unavailable).toBeGreaterThan(0);
  expect(report.sold!.orders).toBe(report.totals!.requests);
  expect((await rehearsalsIn(env)).there).toEqual([]);
});

test('a node that ends by itself is a no-go, although no buyer noticed', async () => {
  const env = await stores(postgres);
  const crowd = ['--rate', '40', '--for', '8', '--stock', '20', '--good', '60000', '--nodes', '2', '--json'];
  await using cli = new RunningCli(['rehearse', ...crowd], { env: { ...env } });
  await cli.said(/The crowd comes/);
  const [node] = await query<{ process: string }>(env.DATABASE_URL, 'SELECT process FROM processes');
  process.kill(Number(node!.process.split(':').at(-2)), 'SIGKILL');
  const { stdout, exitCode } = await cli.ended;
  expect(exitCode).toBe(3);
  expect(namesIn(stdout)).toContain('a node ended');
  expect(reportIn(stdout).reasons.find(({ name }) => name === 'a node ended')!.what).toContain('SIGKILL');
  expect((await rehearsalsIn(env)).there).toEqual([]);
});

test('once a killed node is gone, no buyer notices it any more', async () => {
  const env = await stores(postgres);
  const crowd = ['--rate', '30', '--for', '12', '--arrivals', 'steady', '--stock', '1000', '--good', '60000'];
  const { stdout, stderr } = await runCli(['rehearse', ...crowd, '--json', '--kill-node'], {
    env: { ...env },
  });
  const { seconds, remarks } = reportIn(stdout);
  expect(remarks, stderr).toContain('In second 6 one node was killed. Its buyers went on at the others.');
  expect(seconds.slice(8).map(({ repeated }) => repeated)).toEqual([0, 0, 0, 0]);
});

test('a crowd to a running node, whose limits for one address are named as the reason', async () => {
  const env = await stores(postgres);
  await using node = await startTestNode({
    ...{ redisUrl: env.REDIS_URL, databaseUrl: env.DATABASE_URL, keyPrefix: env.KEY_PREFIX },
    env: { RATE_LIMIT_ADDRESS: '5/1' },
  });
  const { exitCode, stdout } = await runCli(['rehearse', ...SMALL, '--url', node.publicUrl], {
    env: { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken },
  });
  expect(exitCode).toBe(3);
  expect(namesIn(stdout)).toContain('limits of admission');
  expect(reportIn(stdout).totals!.nodeMicros).toBeGreaterThan(0);
  expect((await rehearsalsIn(env)).there).toEqual([]);
});

test('buyers with tokens: the crowd signs them with the secret', async () => {
  const env = await stores(postgres);
  const jwt = { BUYER_AUTH: 'jwt', JWT_SECRET: 'a-secret-of-more-than-32-characters!', JWT_AUDIENCE: 'shop' };
  const { stdout, stderr } = await runCli(['rehearse', ...SMALL], { env: { ...env, ...jwt } });
  expect(gravest(reportIn(stdout)), stderr).toEqual([]);
  expect(reportIn(stdout).sold!.orders).toBe(20);
});
