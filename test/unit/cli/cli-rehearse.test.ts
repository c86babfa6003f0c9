/** Parts of `stockade rehearse` that compute: the plan, arrivals, percentiles, the comparison of books, the verdict, the page. */
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { type Check, checksOf } from '../../../src/cli/doctor/check.ts';
import { checkConnections } from '../../../src/cli/doctor/postgres-connections.ts';
import { checkStandbys } from '../../../src/cli/doctor/postgres-standbys.ts';
import { checkReplicas } from '../../../src/cli/doctor/redis-replicas.ts';
import { ARRIVALS, dueTimes, requestsOf } from '../../../src/cli/rehearse/crowd/arrivals.ts';
import { AT_SHARE, CUT_SECONDS, isExcused, leastSecondsFor } from '../../../src/cli/rehearse/crowd/fault.ts';
import { planFrom } from '../../../src/cli/rehearse/crowd/plan.ts';
import { add, emptySecond, together } from '../../../src/cli/rehearse/crowd/protocol.ts';
import { chartText, drawChart, roundAbove } from '../../../src/cli/rehearse/report/charts.ts';
import { percentile, secondsOf, totalsOf } from '../../../src/cli/rehearse/report/figures.ts';
import { judge, type Rush } from '../../../src/cli/rehearse/report/judge.ts';
import { reportPage } from '../../../src/cli/rehearse/report/page.ts';
import { reportOf, reportText } from '../../../src/cli/rehearse/report/report.ts';
import { sizesOf } from '../../../src/cli/rehearse/report/size.ts';
import { compareBooks } from '../../../src/cli/rehearse/stage/books.ts';
import { startOwnNode } from '../../../src/cli/rehearse/stage/nodes.ts';
import { removeShadowSale } from '../../../src/cli/rehearse/stage/shadow-sale.ts';
import { type Look, readNode } from '../../../src/cli/rehearse/stage/watch.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import { callCli } from '../../support/cli/cli.ts';
import { setClockAhead } from '../../support/clock-ahead.ts';

const plan = planFrom({ rate: '100', for: '2', stock: '10', buyers: '50' });

describe('the plan', () => {
  test('has defaults, and reads numbers', () => {
    expect(planFrom({})).toMatchObject({
      stock: 1_000,
      rate: 500,
      seconds: 10,
      arrivals: 'rush',
      nodes: 1,
      urls: [],
    });
    expect(planFrom({ url: ['http://127.0.0.1:8080/'] })).toMatchObject({
      nodes: 0,
      urls: ['http://127.0.0.1:8080'],
    });
  });

  test.each([
    [{ rate: '0' }, '--rate'],
    [{ for: '0.5' }, '--for'],
    [{ rate: '1000000', for: '3600' }, '--rate'],
    [{ url: ['http://shop.example'], nodes: '2' }, '--nodes'],
    [{ url: ['shop.example'] }, '--url is "shop.example"'],
    [{ url: ['http://anna:geheim@shop.example'] }, '--url is "http://***:***@shop.example/"'],
    [{ report: '' }, '--report'],
    [{ for: '6', killNode: true }, '--for must be at least 7 with --kill-node and --arrivals rush'],
    [{ for: '15', arrivals: 'steady', cutRedis: true }, '--for must be at least 16 with --cut-redis'],
    [{ stock: 'many', segments: '0' }, '--stock'],
  ])('%j is refused', (options, field) => {
    expect(() => planFrom(options)).toThrow(field);
  });
});

describe('arrivals', () => {
  const middle = () => 0.5;

  test.each(ARRIVALS)('%s: rising times within the time, and never above the rate', (arrivals) => {
    const crowding = { arrivals, rate: 200, seconds: 10 };
    const due = dueTimes(crowding, middle);
    expect(due.length).toBe(requestsOf(crowding));
    expect([...due].every((time, i) => i === 0 || time >= due[i - 1]!)).toBe(true);
    expect(due[0]).toBeGreaterThanOrEqual(0);
    expect(due.at(-1)).toBeLessThanOrEqual(10_000);
    for (let second = 0; second < 10; second++) {
      const inSecond = [...due].filter((time) => Math.floor(time / 1_000) === second).length;
      expect(inSecond).toBeLessThanOrEqual(202);
    }
  });

  const inSecond = (due: Float64Array, second: number) =>
    due.filter((time) => Math.floor(time / 1_000) === second).length;

  test('each shape has its rate where it says', () => {
    const due = (arrivals: (typeof ARRIVALS)[number]) =>
      dueTimes({ arrivals, rate: 200, seconds: 10 }, middle);
    expect(inSecond(due('steady'), 7)).toBe(200);
    expect(inSecond(due('rush'), 1)).toBeCloseTo(200, -1);
    expect(inSecond(due('rush'), 9)).toBeLessThan(40);
    expect(inSecond(due('waves'), 2)).toBeCloseTo(200, -1);
    expect(inSecond(due('waves'), 3)).toBeCloseTo(20, -1);
  });
});

test('percentiles are values that occurred', () => {
  const sorted = Array.from({ length: 200 }, (_, i) => i + 1);
  expect([0.5, 0.99, 1].map((share) => percentile(sorted, share))).toEqual([100, 198, 200]);
  expect(percentile([], 0.5)).toBeUndefined();
  expect(percentile([7], 0.99)).toBe(7);
});

test('books: lost, doubled and untold orders', () => {
  const told = [
    { orderId: '1', buyerId: 'a', committed: true },
    { orderId: '2', buyerId: 'b', committed: true },
    { orderId: '3', buyerId: 'c', committed: false },
  ];
  const stored = [
    { orderId: '1', buyerId: 'a' },
    { orderId: '2', buyerId: 'x' },
    { orderId: '4', buyerId: 'a' },
    { orderId: '5', buyerId: 'd' },
  ];
  expect(compareBooks(stored, { told, unanswered: ['d'], limited: ['a', 'e'] })).toEqual({
    ...{ stored: 4, told: 3, lost: ['2', '3'], doubled: ['a'], untold: ['4'], refused: ['e'] },
  });
});

function crowdOf(latencies: number[], ended: Record<string, number>, more = {}) {
  const due = Object.values(ended).reduce((sum, times) => sum + times, 0);
  return { seconds: [{ ...emptySecond(), due, ended, latencies, ...more }] };
}

const reading = { loopP99Ms: 21, lagOrders: 3 };
/** The node answers 100 purchases a second. */
const look = (at: number, cpuSeconds: number, redis: Look['redis'] = []): Look => ({
  ...{ at, redis, unitsLeft: 5 },
  nodes: [{ ...reading, node: 'n', cpuSeconds, purchases: at * 100 }],
});

function rushOf(crowd: ReturnType<typeof crowdOf>, change: Partial<Rush> = {}): Rush {
  const looks = [look(0, 1), look(1, 1.5)];
  return {
    ...{ seconds: secondsOf(crowd, looks), totals: totalsOf(crowd, looks), looks },
    books: { stored: 10, told: 10, lost: [], doubled: [], untold: [], refused: [] },
    verify: { ok: true, findings: [], committedOrders: 10 } as unknown as Rush['verify'],
    ...{ buyersAsked: 50, remaining: 0, drainSeconds: 0.2, faults: [], failures: [], ...change },
  };
}

const GOOD = crowdOf([1, 2, 3], { committed: 10, sold_out: 90 });
const names = (checks: readonly Check[], rush: Rush | undefined) =>
  judge(plan, checks, rush).map(({ name }) => name);

describe('the verdict', () => {
  test('go, if everything held', () => {
    expect(judge(plan, [], rushOf(GOOD))).toEqual([]);
  });

  const books = { stored: 10, told: 10, lost: [], doubled: [], untold: [], refused: [] };
  test.each<[string, Partial<Rush>]>([
    ['oversold', { books: { ...books, stored: 11 } }],
    ['lost orders', { books: { ...books, lost: ['1'] } }],
    ['double orders', { books: { ...books, doubled: ['a'] } }],
    ['untold orders', { books: { ...books, untold: ['1'] } }],
    ['wrong limits', { books: { ...books, refused: ['a'] } }],
    ['undersold', { remaining: 2 }],
    // Then no buyer may be told that all is sold.
    ['undersold', { remaining: 2, buyersAsked: 8 }],
    ['a node ended', { failures: ['it ended with SIGSEGV'] }],
    ['verify', { verify: { ok: false, findings: ['a unit is missing'] } as unknown as Rush['verify'] }],
    ['slow drain', { drainSeconds: undefined }],
    ['slow drain', { drainSeconds: undefined, books: { ...books, lost: ['1'] } }],
  ])('no-go: %s', (name, change) => {
    expect(names([], rushOf(GOOD, change))).toEqual([name]);
  });

  test.each([
    ['limits of admission', crowdOf([1], { rate_limited: 5, committed: 10 })],
    ['slow answers', crowdOf([1, 1_001], { committed: 10, sold_out: 1 })],
    ['overload', crowdOf([1], { committed: 10, sold_out: 90 }, { repeated: { busy: 2 } })],
    ['requests without an answer', crowdOf([1], { committed: 10, no_answer: 1 })],
    ['the crowd was late', crowdOf([1], { committed: 10 }, { lateMs: 101 })],
    ['answers http_404', crowdOf([1], { committed: 10, http_404: 1 })],
    ['answers ended', crowdOf([1], { committed: 10, ended: 1 })],
    ['answers paused', crowdOf([1], { committed: 10, paused: 1 })],
    ['answers of_another_version', crowdOf([1], { committed: 10, of_another_version: 1 })],
  ])('no-go: %s', (name, crowd) => {
    expect(names([], rushOf(crowd))).toEqual([name]);
  });

  test('no-go: a replica that falls behind during the rush', () => {
    const replicas = [{ replica: 'r:1', state: 'online', behindBytes: 10, silentSeconds: 9 }];
    const looks = [look(0, 1), look(1, 2, [{ cpuSeconds: 1, replicas }])];
    expect(names([], rushOf(GOOD, { looks }))).toEqual(['redis replicas']);
  });

  test('no-go by the names of checks; what was sold wrongly comes first', () => {
    const { fail, warn, ok } = checksOf('postgres');
    const clocks = checksOf('clocks').warn('difference', '9,000 ms', 'Let NTP set them.');
    const checks = [
      fail('fsync', 'off', 'Set it on.'),
      warn('encryption', 'none', 'x'),
      ok('role', 'primary'),
      clocks,
    ];
    expect(names(checks, undefined)).toEqual(['postgres fsync', 'clocks difference']);
    expect(names(checks, rushOf(GOOD, { books: { ...books, lost: ['1'] } }))[0]).toBe('lost orders');
  });
});

describe('faults', () => {
  test.each(ARRIVALS)(
    '%s: a second of the shortest crowd that may have a fault is judged after it',
    (arrivals) => {
      for (const [kind, lasts] of [
        ['kill-node', 0],
        ['cut-redis', CUT_SECONDS],
      ] as const) {
        const seconds = leastSecondsFor(kind, arrivals);
        const from = AT_SHARE[arrivals] * seconds + 0.4;
        expect(isExcused(seconds - 1, [{ kind, from, until: from + lasts }])).toBe(false);
        expect(() =>
          planFrom({
            for: String(seconds),
            arrivals,
            [kind === 'kill-node' ? 'killNode' : 'cutRedis']: true,
          }),
        ).not.toThrow();
      }
    },
  );

  const faulty = { ...plan, faults: ['kill-node'] as const };
  const seconds = (bad: number) =>
    Array.from({ length: 20 }, (_, at) => crowdOf([at === bad ? 5_000 : 1], { committed: 1 }).seconds[0]!);
  const killed = (at: number) => [{ kind: 'kill-node' as const, from: at, until: at }];
  const found = (bad: number, faults: Rush['faults']) =>
    judge(faulty, [], rushOf({ seconds: seconds(bad) }, { faults })).map(({ name }) => name);

  test('slow answers are excused around a fault, and at no other time', () => {
    expect(found(6, killed(5.5))).toEqual([]);
    expect(found(3, killed(5.5))).toEqual([]);
    expect(found(2, killed(5.5))).toEqual(['slow answers']);
    expect(found(10, killed(5.5))).toEqual(['slow answers']);
  });

  test('a lost order is never excused; a fault that was not made is named', () => {
    const lost = { ...rushOf(GOOD).books, lost: ['1'] };
    const names = judge(faulty, [], rushOf(GOOD, { faults: killed(0.5), books: lost })).map(
      ({ name }) => name,
    );
    expect(names).toEqual(['lost orders']);
    expect(found(-1, [])).toEqual(['missing faults']);
  });

  test('the report says what was done', () => {
    const { remarks } = reportOf(stage, faulty, [], rushOf(GOOD, { faults: killed(4.2) }));
    expect(remarks).toContain('In second 5 one node was killed. Its buyers went on at the others.');
  });
});

test('what broke first is a second with its rate', () => {
  const crowd = { seconds: [GOOD.seconds[0]!, crowdOf([2_000], { committed: 3 }).seconds[0]!] };
  const report = reportOf(stage, plan, [], rushOf(crowd));
  expect(report.brokeFirst).toBe('In second 2, at 3 requests/s, 1 in 100 answers took longer than 2,000 ms.');
  expect(reportOf(stage, plan, [], rushOf(GOOD)).brokeFirst).toBeUndefined();
});

test('sizes come from what was measured, and say what was not', () => {
  const sizes = sizesOf(plan, totalsOf(GOOD, [look(0, 1), look(1, 1.6)]), 7);
  expect(sizes.map(({ what, cores }) => [what, cores])).toEqual([
    // 0.6 s for 100 requests, at 60 %: one core does 100 requests a second.
    ['cores of nodes', 1],
    ['cores of Redis', undefined],
    ['cores of Postgres', undefined],
  ]);
  expect(sizes[0]!.text).toContain('a mix as here: 7 orders for 100 requests');
  expect(sizes[1]!.text).toBe('not measured');
});

test('a size is that of all requests, although not all nodes were watched to the end', () => {
  const node = (name: string, cpuSeconds: number, purchases: number) => ({
    ...{ ...reading, node: name, cpuSeconds, purchases },
  });
  const before = { ...look(0, 0), nodes: [node('a', 1, 20), node('killed', 1, 0)] };
  const micros = (crowd: ReturnType<typeof crowdOf>, answered: number) =>
    totalsOf(crowd, [before, { ...look(1, 0), nodes: [node('a', 1.3, 20 + answered)] }]).nodeMicros;
  // 0.3 s for 50 of 100 requests. The other node has answered the rest.
  expect(micros(GOOD, 50)).toBeCloseTo(6_000);
  // It has answered all, and 100 of another sale.
  expect(micros(GOOD, 200)).toBeCloseTo(3_000);
  // A buyer that asks again gets another answer, unless its connection has broken.
  const repeated = { busy: 100, broken: 30 };
  expect(micros(crowdOf([1], { committed: 100 }, { repeated }), 200)).toBeCloseTo(3_000);
  expect(micros(GOOD, 0)).toBeUndefined();
});

test('the metrics of a node, of all its workers', () => {
  const text = [
    'process_cpu_seconds_total 12.5',
    'nodejs_eventloop_lag_p99_seconds{thread="main"} 0.02',
    'nodejs_eventloop_lag_p99_seconds{thread="worker"} 0.05',
    'stockade_sync_lag_orders 7',
    'stockade_request_duration_seconds_count{code="committed"} 1',
    'stockade_request_duration_seconds_count{code="sold_out"} 2',
  ].join('\n');
  expect(readNode('n', text)).toMatchObject({
    cpuSeconds: 12.5,
    loopP99Ms: 50,
    lagOrders: 7,
    purchases: 3,
  });
});

test('the threads of a crowd are added up', () => {
  const one = {
    ...crowdOf([1], { committed: 1 }),
    told: [],
    unanswered: ['a'],
    limited: [],
    buyersAsked: ['a', 'b'],
  };
  const sum = together([one, one]);
  expect(sum).toMatchObject({ unanswered: ['a'], buyersAsked: ['a', 'b'] });
  expect(sum.seconds[0]).toMatchObject({ due: 2, ended: { committed: 2 }, latencies: [1, 1] });
  const counts: Record<string, number> = {};
  add(counts, 'busy');
  add(counts, 'busy', 2);
  expect(counts).toEqual({ busy: 3 });
});

describe('checks of stores', () => {
  test('connections: too few ever, too few now, enough', () => {
    const facts = { limit: 97, inUse: 80, by: 'max_connections' };
    const config = { pgPoolMax: 10, workers: 1 };
    expect(checkConnections(facts, 10, config)).toMatchObject({ status: 'fail', name: 'connections' });
    expect(checkConnections(facts, 2, config)).toMatchObject({ status: 'warn' });
    expect(checkConnections(facts, 1, config)).toMatchObject({ status: 'ok' });
    const manyWorkers = { ...config, workers: 4 };
    expect(checkConnections(facts, 1, manyWorkers)).toMatchObject({
      status: 'warn',
      found: expect.stringContaining('a node needs 19'),
    });
  });

  test('replicas of Redis', () => {
    const facts = (slave0: string) => ({ master_repl_offset: '1000', slave0 });
    expect(checkReplicas({})).toMatchObject({ status: 'ok', found: 'none' });
    const near = 'ip=10.0.0.2,port=6379,state=online,offset=990,lag=1';
    expect(checkReplicas(facts(near))).toMatchObject({ status: 'ok' });
    for (const far of [near.replace('lag=1', 'lag=9'), near.replace('online', 'wait_bgsave')])
      expect(checkReplicas(facts(far))).toMatchObject({ status: 'fail', name: 'replicas' });
    const behind = { master_repl_offset: String(2 ** 25), slave0: near };
    expect(checkReplicas(behind)).toMatchObject({ status: 'fail' });
  });

  test('standbys of Postgres', () => {
    const near = { name: 'b', state: 'streaming', behindBytes: 100, behindMs: 3 };
    expect(checkStandbys([])).toMatchObject({ status: 'ok' });
    expect(checkStandbys([near])).toMatchObject({ status: 'ok' });
    expect(checkStandbys([{ ...near, behindMs: 9_000 }])).toMatchObject({ status: 'fail', name: 'standbys' });
    expect(checkStandbys([{ ...near, state: 'catchup' }])).toMatchObject({ status: 'fail' });
    expect(checkStandbys([{ name: 'b', state: null, behindBytes: null, behindMs: null }])).toMatchObject({
      status: 'warn',
    });
  });
});

const stage = {
  ...{ saleId: 's', isRemoved: true },
  begunAt: '2026-11-23T00:00:00.000Z',
  nodes: ['http://127.0.0.1:1'],
  backend: 'redis',
  database: 'postgres',
  embedded: false,
};

describe('the report', () => {
  const { fail } = checksOf('redis');
  const bad = fail('maxmemory-policy', '<script>alert(1)</script>', 'Set noeviction & go on.');

  test('text and page begin with the verdict, and name each reason with what to do', () => {
    const report = reportOf(stage, plan, [bad], rushOf(crowdOf([1, 1_001], { committed: 10 })));
    expect(reportText(report)).toMatch(/^NO-GO: 2 reasons\n1\. redis: maxmemory-policy/);
    const page = reportPage(report);
    expect(page).toContain('<h1>NO-GO</h1>');
    expect(page).toContain('What to do: Set noeviction &#38; go on.');
    expect(reportText(reportOf(stage, plan, [], rushOf(GOOD)))).toMatch(/^GO\n/);
  });

  test('the page holds everything, and nothing of others is executed', () => {
    const page = reportPage(reportOf(stage, plan, [bad], rushOf(GOOD)));
    expect(page).not.toMatch(/<script|<link|src=|href=|@import|url\(/);
    expect(page).toContain('&#60;script&#62;');
    expect(page.match(/<svg/g)!.length).toBe(page.match(/role="img" aria-label="[^"]+"/g)!.length);
  });

  test('a crowd that was not sent has neither charts nor sizes', () => {
    const report = reportOf(stage, plan, [bad], undefined);
    expect(report).toMatchObject({ go: false, seconds: [], sizes: [], sold: undefined });
    expect(reportPage(report)).not.toContain('<svg');
  });

  test('charts: axes end at round numbers, and the text names the peaks', () => {
    expect([0, 0.7, 1, 11, 26, 3_001].map(roundAbove)).toEqual([1, 1, 1, 20, 40, 4_000]);
    const chart = { title: 'Stock', unit: 'units', series: [{ name: 'left', values: [5, undefined, 9] }] };
    expect(chartText(chart)).toBe('Stock: left at most 9 units in second 3.');
    expect(drawChart(chart)).not.toMatch(/NaN|undefined|Infinity/);
    expect(drawChart({ ...chart, stacked: true, bound: { name: 'wanted', value: 4 } })).not.toMatch(
      /NaN|undefined/,
    );
  });
});

describe('a node of the rehearsal that does not start', () => {
  const { execPath } = process;
  afterEach(() => {
    process.execPath = execPath;
  });

  test.each([
    ['because there is no program for it', '/nowhere/node', /does not start: spawn \/nowhere\/node ENOENT/],
    ['because it ends', '/bin/false', /does not start: it ended with 1/],
  ])('%s: the error says so, and nothing is left', async (_, program, message) => {
    const left = () => readdirSync(tmpdir()).filter((name) => name.startsWith('stockade-rehearsal-'));
    const before = left();
    process.execPath = program;
    await expect(startOwnNode(loadConfig({}, {}))).rejects.toThrow(message);
    expect(left()).toEqual(before);
  });
});

test('the verdict is told, even if the report can’t be written', async () => {
  const env = { REDIS_URL: 'redis://127.0.0.1:1', DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  const { exitCode, stdout, stderr } = await callCli(['rehearse', '--json', '--report', '/dev/full'], {
    env,
  });
  expect(JSON.parse(stdout)).toMatchObject({ go: false });
  expect(stderr).toMatch(/error: the report is not in \/dev\/full: .*ENOSPC/);
  expect(exitCode).toBe(3);
});

test('a clock that is set ahead does not end the wait for the end of the sale', async () => {
  setClockAhead();
  const states = ['deleting', 'deleting', 'deleting', 'deleting', 'deleted'];
  const deletion = async () => ({ state: states.shift() });
  await removeShadowSale({ deletion } as unknown as Parameters<typeof removeShadowSale>[0], 'x');
  expect(states).toEqual([]);
});
