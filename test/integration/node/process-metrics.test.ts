/** The metrics of the process and of its threads, as Prometheus reads them. */
import { request } from 'undici';
import { expect, test } from 'vitest';
import { version } from '../../../src/node/process/version.ts';
import { freshDatabase, freshPrefix, redisUrl } from '../../support/fixtures.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { embedded, redisAndPostgres } from '../../support/nodes/stores.ts';
import { SyncProgram } from '../../support/nodes/sync-program.ts';
import { isRelease } from '../../support/tier.ts';

/** Its series, and their values. A metric has one type, however many threads have it. */
function seriesIn(text: string): Map<string, number> {
  const types = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
  expect(types.filter((name, i) => types.indexOf(name) !== i)).toEqual([]);
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => /^(.*) (\S+)$/.exec(line)!.slice(1)).map(([key, n]) => [key!, Number(n)]),
  );
}

function expectProcess(series: ReadonlyMap<string, number>): void {
  expect(series.get('process_cpu_seconds_total')).toBeGreaterThan(0);
  expect(series.get('process_resident_memory_bytes')).toBeGreaterThan(5e7);
  expect(series.get('process_open_fds')).toBeGreaterThan(3);
  expect(series.get('process_max_fds')).toBeGreaterThan(100);
  const startedS = Date.now() / 1_000 - series.get('process_start_time_seconds')!;
  expect(startedS).toBeGreaterThan(0);
  expect(startedS).toBeLessThan(300);
  expect(series.get(`stockade_build_info{version="${version()}",node="${process.versions.node}"}`)).toBe(1);
  expect([...series.keys()].filter((key) => key.startsWith('nodejs_active_'))).toEqual([]);
}

function expectThread(series: ReadonlyMap<string, number>, thread: string): void {
  const label = `{thread="${thread}"}`;
  expect(series.get(`nodejs_eventloop_lag_p99_seconds${label}`)).toBeGreaterThan(0);
  expect(series.get(`nodejs_heap_size_used_bytes${label}`)).toBeGreaterThan(1e6);
  expect(series.get(`nodejs_external_memory_bytes${label}`)).toBeGreaterThan(0);
  expect([...series.keys()]).toContainEqual(
    expect.stringMatching(new RegExp(`^nodejs_gc_duration_seconds_count\\{.*thread="${thread}"`)),
  );
}

const threadsIn = (series: ReadonlyMap<string, number>) =>
  [...series.keys()].flatMap((key) => /^nodejs_heap_size_used_bytes\{thread="(.*)"\}$/.exec(key)?.[1] ?? []);

test('a node has those of the process once, and those of each thread', async () => {
  await using node = await startTestNode({ ...(await redisAndPostgres()), env: { WORKERS: '2' } });
  const series = seriesIn((await node.opsRequest('/metrics')).body);
  expectProcess(series);
  expect(threadsIn(series).sort()).toEqual(['main', 'worker-0', 'worker-1']);
  for (const thread of threadsIn(series)) expectThread(series, thread);
});

if (isRelease) {
  test('an embedded node has one thread', async () => {
    await using node = await startTestNode(await embedded());
    const series = seriesIn((await node.opsRequest('/metrics')).body);
    expectProcess(series);
    expect(threadsIn(series)).toEqual(['main']);
  });
}

test('`stockade sync` has them too, and every counter of its own from the start', async () => {
  const OPS_TOKEN = 'a-token-for-operators';
  await using sync = await SyncProgram.start({
    ...{ REDIS_URL: redisUrl(), DATABASE_URL: await freshDatabase(), KEY_PREFIX: freshPrefix(), OPS_TOKEN },
  });
  const [, url] = /"opsUrl":"([^"]+)"/.exec(await sync.log())!;
  const { body } = await request(`${url}/metrics`, { headers: { authorization: `Bearer ${OPS_TOKEN}` } });
  const series = seriesIn(await body.text());
  expectProcess(series);
  expectThread(series, 'main');
  // A counter that only exists after its first event has no increase that Prometheus could see.
  for (const reason of ['stock', 'limit', 'duplicate'])
    expect(series.get(`stockade_guard_rejections_total{reason="${reason}"}`), reason).toBe(0);
  for (const why of ['uneven', 'unfinished'])
    expect(series.get(`stockade_transfers_total{why="${why}"}`), why).toBe(0);
});
