/**
 * The alert rules and the board of deploy/. Each alert fires when it must and not before, by promtool. Each of their queries has
 * a result in a Prometheus that scrapes a node and a `stockade sync`.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findServer } from '../../scripts/servers.mjs';
import { BY } from '../support/author.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../support/fixtures.ts';
import { startTestNode, type TestNode } from '../support/nodes/node.ts';
import { SyncProgram } from '../support/nodes/sync-program.ts';
import { PrometheusServer } from '../support/servers/prometheus-server.ts';
import { QUEUE } from '../support/shop/queue.ts';
import { alerts, boardQueries, metricsIn, valuesOf } from '../support/watching/queries.ts';

const DEPLOY = fileURLToPath(new URL('../../deploy/prometheus', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'stockade-watching-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function promtool(...args: string[]): Promise<string> {
  return promisify(execFile)(join(findServer('prometheus')!, 'promtool'), args, { cwd: folder }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => {
      throw new Error(`promtool ${args.join(' ')}\n${stdout}${stderr}`);
    },
  );
}

test('promtool accepts the rules and both configurations', async () => {
  expect(await promtool('check', 'rules', join(DEPLOY, 'alerts.yml'))).toContain(
    `${alerts().length} rules found`,
  );
  await promtool('check', 'config', '--syntax-only', join(DEPLOY, 'prometheus.yml'));
  // Debian's Prometheus knows no Kubernetes: the other members of the job are checked.
  const [before, targets, after, ...rest] = readFileSync(join(DEPLOY, 'kubernetes.yml'), 'utf8').split(
    /^( {4}kubernetes_sd_configs:\n {6}- role: pod\n.*\n)/m,
  );
  expect([targets, rest]).toEqual([expect.stringContaining('app.kubernetes.io/name=stockade'), []]);
  writeFileSync(join(folder, 'kubernetes.yml'), `${before}${after}`);
  await promtool('check', 'config', '--syntax-only', 'kubernetes.yml');
});

/** Values of a series, one a minute, in promtool's notation: `0x5 1x9` are six zeros and ten ones. */
type Input = Readonly<Record<string, string>>;
interface Case {
  readonly fires: Input;
  readonly silent: Input;
  /** When both are looked at; default: after ten minutes. */
  readonly at?: string;
}

const counter = (series: string): Case => ({ fires: { [series]: '0x5 1x15' }, silent: { [series]: '0x20' } });
/** Above its threshold, and at it. */
const gauge = (series: string, above: number, at: number, when = '10m'): Case => ({
  fires: { [series]: `${above}x100` },
  silent: { [series]: `${at}x100` },
  at: when,
});
const often = (series: string): Case => ({
  fires: { [series]: '0+1x20' },
  silent: { [series]: '0x5 1x5 2x10' },
});
const NODE = 'job="stockade",instance="a"';
const DURATION = 'stockade_request_duration_seconds';
/** So many answers of a kind a minute, beside a thousand committed purchases. */
const share = (outcome: string, above: number, below: number): Case => {
  const input = (n: number) => ({
    [`${DURATION}_count{${NODE},outcome="committed"}`]: '0+1000x20',
    [`${DURATION}_count{${NODE},outcome="${outcome}"}`]: `0+${n}x20`,
  });
  return { fires: input(above), silent: input(below) };
};
const slow = (bound: string): Input => ({
  [`${DURATION}_bucket{outcome="committed",le="${bound}"}`]: '0+100x20',
  [`${DURATION}_bucket{outcome="committed",le="+Inf"}`]: '0+100x20',
});

const CASES: Readonly<Record<string, Case>> = {
  StockadeGuardRejections: counter('stockade_guard_rejections_total{reason="stock"}'),
  StockadeLogBreaks: counter('stockade_log_breaks_total'),
  StockadeLostOrders: counter('stockade_sync_lost_orders_total'),
  StockadeRebuilds: counter('stockade_rebuilds_total'),
  StockadeRedisEvicts: gauge('stockade_redis_evicting_servers', 1, 0),
  StockadeSaleSetAside: counter('stockade_sync_sale_failures_total'),
  StockadeSyncCrashes: often(`stockade_sync_crashes_total{${NODE}}`),
  StockadeSyncLate: gauge('stockade_sync_lag_seconds', 61, 60),
  StockadeNoSync: {
    fires: { [`${DURATION}_count{outcome="accepted"}`]: '0+10x20', stockade_sync_orders_total: '7x20' },
    silent: { [`${DURATION}_count{outcome="accepted"}`]: '0+10x20', stockade_sync_orders_total: '0+10x20' },
  },
  StockadeCommitsSlow: {
    fires: { ...slow('2.5'), [`${DURATION}_bucket{outcome="committed",le="1"}`]: '0+90x20' },
    silent: { ...slow('0.5'), [`${DURATION}_bucket{outcome="committed",le="0.1"}`]: '0+90x20' },
  },
  StockadeExpiryLate: {
    fires: { stockade_expiry_lag_seconds: '61x20', stockade_expired_orders_total: '0+1x20' },
    // The last orders expired late, long ago.
    silent: { stockade_expiry_lag_seconds: '61x20', stockade_expired_orders_total: '5x20' },
  },
  StockadeExpiryFails: often('stockade_expiry_failures_total'),
  StockadeQueueFails: often('stockade_queue_failures_total'),
  StockadeQueueSilent: gauge('stockade_queue_silent_seconds{sale="tickets"}', 31, 30),
  StockadeDeadLetters: gauge('stockade_webhook_dead_letters', 1, 0),
  StockadeEventsLate: gauge('stockade_outbox_age_seconds', 301, 300),
  StockadeWebhookLate: gauge('stockade_webhook_age_seconds', 301, 300),
  StockadeEventsMissed: counter('stockade_events_missed_total'),
  StockadeRelayCrashes: often(`stockade_relay_crashes_total{${NODE}}`),
  StockadeUnknownAnswers: share('unknown', 20, 5),
  StockadeBusyAnswers: share('busy', 100, 20),
  StockadeUnavailableAnswers: share('unavailable', 20, 5),
  StockadeConnectionsRefused: {
    fires: { [`stockade_connections_refused_total{${NODE},how="busy"}`]: '0x8 1x12' },
    silent: { [`stockade_connections_refused_total{${NODE},how="busy"}`]: '0x20' },
  },
  StockadeConnectionsLimited: {
    fires: { [`stockade_connections_limited_total{${NODE},how="busy"}`]: '0+50x20' },
    silent: { [`stockade_connections_limited_total{${NODE},how="busy"}`]: '0+5x20' },
  },
  StockadeSettingsDiffer: gauge('stockade_settings_differing', 1, 0, '20m'),
  StockadeDown: gauge(`up{${NODE}}`, 0, 1),
  StockadeNoProcess: { fires: {}, silent: { [`up{${NODE}}`]: '0x20' } },
  StockadeCrashLoop: {
    fires: { [`process_start_time_seconds{${NODE}}`]: '0+60x20' },
    silent: { [`process_start_time_seconds{${NODE}}`]: '0x5 60x5 120x10' },
  },
  StockadeEventLoopSlow: gauge(`nodejs_eventloop_lag_p99_seconds{${NODE},thread="main"}`, 0.6, 0.5),
  StockadeWorkersSilent: gauge(`stockade_workers_silent{${NODE}}`, 1, 0, '2m'),
  StockadeOpenFiles: {
    fires: { [`process_open_fds{${NODE}}`]: '91x20', [`process_max_fds{${NODE}}`]: '100x20' },
    silent: { [`process_open_fds{${NODE}}`]: '90x20', [`process_max_fds{${NODE}}`]: '100x20' },
  },
  StockadeVersionsDiffer: {
    fires: { 'stockade_build_info{version="1"}': '1x100', 'stockade_build_info{version="2"}': '1x100' },
    silent: { 'stockade_build_info{version="1"}': '1x100', 'stockade_build_info{version="2"}': '1x9 _x90' },
    at: '80m',
  },
};

test('each alert has a case', () => {
  const names = alerts().map(({ name }) => name);
  expect(Object.keys(CASES).sort()).toEqual(names.sort());
});

/** A test for promtool: whether the alert fires with this input. */
function ruleTest(name: string, input: Input, at: string, fires: boolean) {
  return {
    interval: '1m',
    input_series: Object.entries(input).map(([series, values]) => ({ series, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${name}",alertstate="firing"})`,
        eval_time: at,
        exp_samples: fires ? [{ labels: '{}', value: 1 }] : [],
      },
    ],
  };
}

test.each(Object.entries(CASES))(
  '%s fires, and not too early',
  async (name, { fires, silent, at = '10m' }) => {
    const write = (tests: readonly object[]) =>
      // JSON is YAML.
      writeFileSync(
        join(folder, 'tests.yml'),
        JSON.stringify({ rule_files: [join(DEPLOY, 'alerts.yml')], evaluation_interval: '1m', tests }),
      );
    write([ruleTest(name, fires, at, true), ruleTest(name, silent, at, false)]);
    await promtool('test', 'rules', 'tests.yml');
    write([ruleTest(name, silent, at, true)]);
    await expect(promtool('test', 'rules', 'tests.yml')).rejects.toThrow('FAILED');
  },
);

/** They select an answer that no buyer has got yet, so they have no value (docs/operations/watching.md). */
const WITHOUT_VALUE = ['StockadeUnknownAnswers', 'StockadeBusyAnswers', 'StockadeUnavailableAnswers'];

describe('in a Prometheus that scrapes a node and a sync', () => {
  let node: TestNode;
  let sync: SyncProgram;
  let prometheus: PrometheusServer;
  const listening = new AbortController();

  beforeAll(async () => {
    const stores = { redisUrl: redisUrl(), databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
    node = await startTestNode({ ...stores, env: { WORKERS: '2', SYNC: 'off' } });
    const { redisUrl: REDIS_URL, databaseUrl: DATABASE_URL, keyPrefix: KEY_PREFIX } = stores;
    sync = await SyncProgram.start({ REDIS_URL, DATABASE_URL, KEY_PREFIX, OPS_TOKEN: node.opsToken });
    const [, syncUrl] = /"opsUrl":"([^"]+)"/.exec(await sync.log())!;
    const targets = [node.opsUrl, syncUrl!].map((url) => new URL(url).host);
    prometheus = await PrometheusServer.start(targets, node.opsToken);
    await node.ops.create({ id: 'tickets', stock: 1_000 }, BY.actor);
    for (let i = 0; i < 20; i++) {
      expect((await node.buy('tickets', `buyer-${i}`)).status).toBe(201);
      expect((await node.buy('tickets', `hasty-${i}`, { prefer: 'respond-async' })).status).toBe(202);
    }
    const buyer = { 'x-buyer-id': 'buyer-0' };
    // A buyer who listens all the time.
    await node.ops.create({ id: 'queued', stock: 1, ...QUEUE }, BY.actor);
    await node.request('/v1/sales/queued/place', { method: 'POST', headers: buyer });
    await fetch(`${node.publicUrl}/v1/sales/queued/place/events`, {
      ...{ headers: buyer, signal: listening.signal },
    });
    await node.request('/v1/sales/tickets/tokens', { method: 'POST', headers: buyer });
    const scrapes = 'min(count_over_time(up[1m])) >= 4 and count(up == 1) == 2';
    await until(async () => (await prometheus.query(scrapes)).length > 0, {
      what: 'both were scraped four times',
    });
    const seen = 'sum(stockade_sync_orders_total) >= 40 and sum(stockade_units_left) == 960';
    await until(async () => (await prometheus.query(seen)).length > 0, { what: 'the purchases are seen' });
  });
  afterAll(async () => {
    listening.abort();
    await prometheus?.[Symbol.asyncDispose]();
    await sync?.[Symbol.asyncDispose]();
    await node?.[Symbol.asyncDispose]();
  });

  test.each(alerts())('$name compares something, and is silent', async (alert) => {
    expect(await prometheus.query(alert.expr)).toEqual([]);
    const values = valuesOf(alert);
    if (WITHOUT_VALUE.includes(alert.name)) {
      const total = values.map((value) => value.split(' / ')[1]!);
      for (const value of total) expect(await prometheus.query(value), value).not.toEqual([]);
    } else for (const value of values) expect(await prometheus.query(value), value).not.toEqual([]);
  });

  test.each(boardQueries())('the panel "$title" shows something: $expr', async ({ expr }) => {
    expect(await prometheus.query(expr)).not.toEqual([]);
  });

  test('a query of a metric that does not exist has no result', async () => {
    expect(await prometheus.query('sum(rate(stockade_synced_orders_total[1m]))')).toEqual([]);
    expect(metricsIn('sum(rate(stockade_synced_orders_total[1m]))')).toEqual([
      'stockade_synced_orders_total',
    ]);
  });
});
