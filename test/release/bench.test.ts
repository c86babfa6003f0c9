/** The benches, in their smallest form: that they measure what they say, not how fast it was. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TSX = fileURLToPath(new URL('../../node_modules/tsx/dist/cli.mjs', import.meta.url));
const BENCH_LIMIT_MS = 300_000;

/** Everything that the bench has written to stdout. It fails if the bench does: answers were wrong, or verify failed. */
async function runTiny(
  bench:
    | 'growth'
    | 'history'
    | 'http'
    | 'latency'
    | 'locks'
    | 'overload'
    | 'queue'
    | 'rebalance'
    | 'recover'
    | 'resize'
    | 'scale'
    | 'soak'
    | 'start'
    | 'sync',
  ...more: string[]
): Promise<string> {
  const args = [TSX, `bench/${bench}/main.ts`, '--tiny', '--json', ...more];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: ROOT,
    timeout: BENCH_LIMIT_MS,
  });
  return stdout;
}

const positive = expect.toSatisfy((value: unknown) => typeof value === 'number' && value > 0);
const someOrNone = expect.toSatisfy((value: unknown) => typeof value === 'number' && value >= 0);
const onLinux = process.platform === 'linux';
const cpu = onLinux
  ? { nodeCpuMicros: someOrNone, redisCpuMicros: someOrNone, postgresCpuMicros: someOrNone }
  : {};

describe('bench:http', () => {
  const figures = { requestsPerSecond: positive, p50Ms: positive, p99Ms: positive, ...cpu };
  const selling = { ...figures, ratio: positive, ...(onLinux && { cpuRatio: positive, coreUse: positive }) };
  const phases = ['soldOut', 'accepted', 'committed'];

  it('prints one object with the figures of all four phases', async () => {
    const result = JSON.parse(await runTiny('http'));
    expect(result.echo).toMatchObject(figures);
    expect(result.echo).not.toHaveProperty('ratio');
    for (const phase of phases) expect(result[phase], phase).toMatchObject(selling);
    expect(result.accepted).toMatchObject({
      takeOrders: positive,
      quartiles: { ratio: [positive, positive] },
    });
    expect(result.accepted.drain).toMatchObject({ orders: someOrNone, seconds: positive, ratio: positive });
    expect(result.accepted.drain.requestsPerSecond).toBeLessThan(result.accepted.requestsPerSecond);
    expect(result.committed).toMatchObject({ takeOrders: positive, transactionOrders: positive });
    expect(result.connections).toBe(16);
    expect(result.parameters).toMatchObject({ connections: [16], seconds: 1, rounds: 1 });
    expect(result.machine).toMatchObject({ cores: positive, wrk: expect.any(String) });
  });

  it('measures with each number of connections, and compares this build with another', async () => {
    const result = JSON.parse(
      await runTiny('http', '--connections', '4,2', '--compare', 'dist,http-server=node'),
    );
    expect(result.sweep.map(({ connections }: { connections: number }) => connections)).toEqual([2, 4]);
    for (const point of result.sweep) {
      for (const phase of phases) {
        expect(point[phase], phase).toMatchObject(selling);
        expect(point.compared[phase].other, phase).toMatchObject(selling);
      }
    }
    expect(result.connections).toBe(4);
    if (onLinux) expect(result.compared.soldOut.nodeCpu.median).toBeLessThan(1);
  });
});

describe('bench:http --other-segments', () => {
  it('compares sales of two numbers of segments', async () => {
    const result = JSON.parse(await runTiny('http', '--segments', '2', '--other-segments', '1'));
    expect(result.parameters).toMatchObject({ segments: 2, otherSegments: 1 });
    expect(result.compared.committed.other).toMatchObject({ takeOrders: positive });
  });
});

describe('bench:http --embedded', () => {
  it('measures a node without stores', async () => {
    const result = JSON.parse(await runTiny('http', '--embedded'));
    expect(result.parameters).toMatchObject({ embedded: true });
    for (const phase of ['soldOut', 'committed'])
      expect(result[phase], phase).toMatchObject({ ratio: positive, requestsPerSecond: positive });
    expect(result).not.toHaveProperty('accepted');
    if (onLinux) expect(result.committed).toMatchObject({ nodeCpuMicros: positive, wrkCpuMicros: positive });
  });
});

describe('bench:http --traces', () => {
  it('compares a node that traces nothing with one that traces all purchases', async () => {
    const result = JSON.parse(await runTiny('http', '--traces', '1'));
    expect(result.compared.committed.other).toMatchObject({ requestsPerSecond: positive });
    expect(result.spans).toMatchObject({ exported: positive, failed: 0, dropped: someOrNone });
    if (onLinux) expect(result.compared.committed.nodeCpu.median).toBeLessThan(1);
  });
});

describe('bench:locks', () => {
  it('prints one object with the ratios and with every line that was measured', async () => {
    const chosen = ['--striping-processes', '1', '--spread-ms', '0'];
    const result = JSON.parse(await runTiny('locks', ...chosen));
    for (const ratio of ['segments16OverOne', 'segments64OverOne', 'wakeupCommandShare', 'combiningGain']) {
      expect(result[ratio], ratio).toEqual(positive);
    }
    const figures = { perSecond: positive, samples: positive, p50Ms: someOrNone, p99Ms: positive };
    const line = { task: expect.any(Object), clients: positive, processes: positive, ...figures };
    expect(result.striping).toHaveLength(3);
    for (const striped of result.striping) {
      expect(striped).toMatchObject({ processes: 1, task: { insideMs: 2, spreadMs: 0 } });
    }
    for (const group of ['striping', 'strategies', 'ids', 'grid']) {
      for (const measured of result[group]) expect(measured, group).toMatchObject(line);
    }
    const [one, sixteen, sixtyFour] = result.striping;
    expect(result.segments16OverOne).toBeCloseTo(sixteen.perSecond / one.perSecond, 1);
    expect(result.segments64OverOne).toBeCloseTo(sixtyFour.perSecond / one.perSecond, 1);
    const kinds = new Set(result.grid.map(({ task }: { task: { kind: string } }) => task.kind));
    expect(kinds).toEqual(new Set(['spin', 'wake-up']));
    expect(result.parameters).toMatchObject({ clients: 16, processes: 2 });
  });
});

describe('bench:latency', () => {
  it('prints one object with the latencies of each load', async () => {
    const result = JSON.parse(await runTiny('latency'));
    const ofServer = { perSecond: positive, p50Ms: positive, p99Ms: positive, unsent: someOrNone };
    const cost = {
      take: positive,
      transaction: positive,
      node: positive,
      redis: positive,
      postgres: positive,
    };
    const latency = { ...ofServer, cost, inserting: ofServer };
    expect(result).toMatchObject({ capacity: positive, lone: latency });
    expect(result.loads).toMatchObject({ 10: latency, 30: latency, 60: latency });
    expect(result.loads[10].perSecond).toBeLessThan(result.capacity / 2);
  });
});

describe('bench:queue', () => {
  /** Redis has nothing of a place. What else its memory does is spread over few places here. */
  const isAboutNone = (bytes: unknown) => typeof bytes === 'number' && Math.abs(bytes) < 5;

  it('prints one object with the cost of places, a long queue, returns and both kinds of rushes', async () => {
    const result = JSON.parse(await runTiny('queue'));
    expect(result).toMatchObject({
      ...{ placesPerSecond: positive, ratio: positive, freeUnitMaxMs: someOrNone, overtaken: 0 },
      bytesPerPlace: { postgres: positive, redis: expect.toSatisfy(isAboutNone) },
      offerToCommitP99Ms: { freeToOffer: someOrNone, accept: positive },
    });
    const { listeners } = result.parameters;
    expect(result.streams).toMatchObject({
      ...{ listeners, toldPerSecond: positive, alonePerSecond: positive, besidePerSecond: positive },
      ...{ ratio: positive, crowdP99Ms: positive },
    });
    // Each is told one change a second.
    expect(result.streams.toldPerSecond).toBeLessThan(2);
    expect(result.waiting.bytesPerPlace).toEqual(result.bytesPerPlace);
    const polls = { perSecond: positive, ratio: positive, p99Ms: positive };
    expect(result.waiting).toMatchObject({
      ...{ places: 6_000, givenPerSecond: { first: positive, last: positive } },
      headRound: { p50Ms: positive, maxMs: positive, rounds: positive },
      ...{ polls: { withToken: polls, withoutToken: polls }, returned: { p50Ms: someOrNone } },
    });
    expect(result.returns.units).toMatchObject({ freed: 3, left: 0 });
    const ways = (result.rush as Record<string, unknown>[]).map(({ hasQueue, giveUp }) => [hasQueue, giveUp]);
    expect(ways).toEqual([
      [true, false],
      [false, false],
      [true, true],
      [false, true],
    ]);
    for (const way of result.rush) {
      expect(way).toMatchObject({ requests: positive, sold: someOrNone, inVain: { people: positive } });
      if (way.hasQueue) expect(way.overtaken).toBe(0);
    }
  });
});

describe('bench:start', () => {
  it('prints one object with starts, costs and memory', async () => {
    const result = JSON.parse(await runTiny('start'));
    const kinds = [
      'storesFirst',
      'storesAgain',
      'embeddedFirst',
      'embeddedAgain',
      'pgliteFirst',
      'pgliteAgain',
    ];
    for (const kind of kinds) expect(result.startMs[kind], kind).toEqual(positive);
    expect(result).toMatchObject({
      createMs: positive,
      idle: { nodeMsPerSecond: positive },
      memory: { before: positive, connected: positive },
    });
  });
});

describe('bench:sync', () => {
  it('prints one object with the figures of both methods', async () => {
    const result = JSON.parse(await runTiny('sync'));
    const figures = { rowsPerSecond: positive, rowsPerTransaction: positive, ...cpu };
    expect(result.bare).toMatchObject(figures);
    expect(result.sync).toMatchObject({ ...figures, ratio: positive });
    expect(result.sync.ratio).toBeCloseTo(result.sync.rowsPerSecond / result.bare.rowsPerSecond, 2);
    expect(result.parameters).toMatchObject({ orders: 20_000, rounds: 1 });
  });
});

describe('bench:history', () => {
  it('prints one object with the growth of each operation and the slowest route', async () => {
    const result = JSON.parse(await runTiny('history'));
    expect(result).toMatchObject({
      ...{ orders: 20_000, sales: 50, worstOperatorMs: positive, worstOperator: expect.any(String) },
      ...{ verifyGrowth: positive, recoverGrowth: positive, commitGrowth: positive, showGrowth: positive },
      ...{ resizeGrowth: positive, expiryGrowth: positive, worstCommandMs: positive },
      exported: [500, 5_000].map((orders) => ({ orders, seconds: positive, peakMegabytes: positive })),
    });
  });
});

describe('bench:recover', () => {
  it('prints one object with the seconds of all methods', async () => {
    const result = JSON.parse(await runTiny('recover'));
    expect(result.seconds).toEqual({ read: positive, rebuild: positive, continued: positive });
    expect(result.parameters).toMatchObject({ orders: 20_000, rounds: 1 });
  });
});

describe('bench:resize', () => {
  it('prints one object with the waits of every resize', async () => {
    const result = JSON.parse(await runTiny('resize'));
    const figures = { purchases: positive, longestMs: positive, p999Ms: positive, seconds: positive };
    expect(result.resizes).toMatchObject(
      ['memory', 'redis'].flatMap((backend) => [
        { backend, from: 8, to: 32, ...figures },
        { backend, from: 32, to: 4, ...figures },
      ]),
    );
    expect(result.longestMs).toBe(
      Math.max(...result.resizes.map(({ longestMs }: { longestMs: number }) => longestMs)),
    );
  });
});

describe('bench:growth', () => {
  it('prints one object with the points of all dimensions', async () => {
    const result = JSON.parse(await runTiny('growth'));
    const figures = { cpu: positive, wall: positive, node: positive, redis: positive };
    const dimensions: Record<string, number[]> = {
      stock: [1_000],
      buyers: [1_000],
      sales: [1, 10],
      segments: [1],
      lanes: [8, 32, 128],
    };
    expect(Object.keys(result.dimensions)).toEqual(Object.keys(dimensions));
    for (const [name, values] of Object.entries(dimensions)) {
      const { points, growth } = result.dimensions[name];
      expect(
        points.map(({ at }: { at: number }) => at),
        name,
      ).toEqual(values);
      for (const { take, commit } of points) {
        expect(take, name).toMatchObject(figures);
        expect(commit, name).toMatchObject(figures);
      }
      expect(growth.take, name).toBeGreaterThanOrEqual(1);
      expect(growth.commit, name).toBeGreaterThanOrEqual(1);
    }
    const { bar, growth, points } = result.waiting;
    expect({ bar, growth }).toEqual({ bar: 2, growth: positive });
    expect(points.map(({ at }: { at: number }) => at)).toEqual([1, 10]);
    for (const { order } of points) expect(order).toMatchObject({ ...figures, postgres: positive });
    expect(result).toMatchObject({
      worstGrowth: positive,
      redisBytesPerOrder: positive,
      redisBytesPerBuyer: positive,
    });
    expect(result.parameters).toMatchObject({ orders: 1_024, samples: 1 });
  });
});

describe('bench:scale', () => {
  it('prints one object with the points of both crowds, and with the drains', async () => {
    const result = JSON.parse(await runTiny('scale'));
    for (const crowd of ['equalBatches', 'sameCrowd']) {
      const { points, worstOverBest, bar } = result[crowd];
      const sizes = points.map(({ primaries, nodes }: Record<string, number>) => [primaries, nodes]);
      expect(sizes, crowd).toEqual([1, 3].flatMap((primaries) => [1, 2].map((nodes) => [primaries, nodes])));
      for (const point of points) {
        expect(point, crowd).toMatchObject({ ...cpu, ordersPerSecond: positive, takeOrders: positive });
      }
      expect(bar, crowd).toEqual(positive);
      expect(result[crowd].takesSpread, crowd).toBeGreaterThanOrEqual(1);
      if (onLinux) expect(worstOverBest, crowd).toBeGreaterThanOrEqual(1);
    }
    expect(result.drains).toMatchObject([
      { syncs: 1, ratio: 1, largestShare: 1 },
      { syncs: 2, ratio: positive, largestShare: 0.5 },
    ]);
  });
});

describe('bench:overload', () => {
  it('prints one object with the answers before, during and after the overload, and beside silent connections', async () => {
    const { overload, silent, parameters } = JSON.parse(await runTiny('overload'));
    expect(overload.capacityPerSecond).toEqual(positive);
    expect(overload.busyWithoutRetryAfter).toBe(0);
    for (const span of ['before', 'during', 'after']) {
      expect(overload.spans[span], span).toMatchObject({
        offeredPerSecond: positive,
        busyPerSecond: someOrNone,
        peakResidentMb: positive,
      });
    }
    expect(silent).toMatchObject({ idle: 100, slow: 30, rateRatio: positive, p99Ratio: positive });
    expect(parameters).toMatchObject({ times: 4, lines: 1_500 });
  });
});

describe('soak', () => {
  it('leaves no handle, no connection and no pending row', async () => {
    const { before, after, orders, answers } = JSON.parse(await runTiny('soak'));
    const own = (sample: typeof before) => sample.handles - sample.redisClients - sample.postgresConnections;
    expect(own(after)).toBeLessThanOrEqual(own(before));
    expect(after).toMatchObject({ connections: 0, waitingRows: 0, underWay: 0 });
    expect(after.redisClients).toBe(before.redisClients);
    expect(after.residentBytes - before.residentBytes).toBeLessThan(512 * 1024 ** 2);
    expect(orders).toEqual(positive);
    for (const deed of ['buy 201', 'repeat 201', 'soldOut 409', 'notStarted 403', 'abort 0']) {
      expect(answers[deed], deed).toEqual(positive);
    }
  });
});

describe('bench:rebalance', () => {
  it('prints one object with each variant, on one Redis and on a cluster', async () => {
    const result = JSON.parse(await runTiny('rebalance'));
    const ways = (result.ways as Record<string, unknown>[]).map(({ place, timer }) => [place, timer]);
    expect(ways).toEqual([
      ['one Redis', false],
      ['one Redis', true],
      ['cluster', false],
      ['cluster', true],
    ]);
    for (const way of result.ways) {
      expect(way).toMatchObject({
        ordersPerSecond: positive,
        refills: positive,
        p50: positive,
        p99: positive,
      });
    }
    expect(result.parameters).toMatchObject({ orders: 400, segments: 4 });
  });
});
