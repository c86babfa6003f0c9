/** The catalogue's bench in its smallest form: that it measures every row and draws what it has measured. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CatalogueResult } from '../../bench/catalogue/result.ts';
import { NAMING_ROWS, SELLING_ROWS } from '../../catalogue/catalogue.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TSX = fileURLToPath(new URL('../../node_modules/tsx/dist/cli.mjs', import.meta.url));
const BENCH_LIMIT_MS = 300_000;

const someOrNone = expect.toSatisfy((value: unknown) => typeof value === 'number' && value >= 0);
const positive = expect.toSatisfy((value: unknown) => typeof value === 'number' && value > 0);

describe('bench:catalogue', () => {
  let folder: string;
  let result: CatalogueResult;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bench-catalogue-'));
    const files = ['--html', join(folder, 'page.html'), '--svg', join(folder, 'chart.svg')];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [TSX, 'bench/catalogue/main.ts', '--tiny', '--json', ...files],
      { cwd: ROOT, timeout: BENCH_LIMIT_MS },
    );
    result = JSON.parse(stdout);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const row = (id: string) => result.rows.find((found) => found.id === id)!;

  it('measures every row, in the order of the catalogue', () => {
    expect(result.rows.map(({ id }) => id)).toEqual(SELLING_ROWS.map(({ id }) => id));
    expect(result.naming.map(({ id }) => id)).toEqual(NAMING_ROWS.map(({ id }) => id));
    for (const { id, selling, crowd } of result.rows) {
      expect(selling, id).toMatchObject({
        ordersPerSecond: someOrNone,
        p50Ms: someOrNone,
        p99Ms: someOrNone,
      });
      expect(crowd, id).toMatchObject({ requestsPerSecond: someOrNone, sold: positive });
      expect(crowd.oversold, id).toBe(Math.max(0, crowd.sold - result.parameters.stock));
    }
    for (const { id, ...figures } of result.naming)
      expect(figures, id).toMatchObject({ idsPerSecond: positive });
    expect(result).toMatchObject({ clientsAlone: positive, machine: { zookeeper: expect.any(String) } });
  });

  it('counts what an order costs the stores', () => {
    // The order and the stock: a decrement and a push, within a script or without.
    expect(row('C2').selling).toMatchObject({ redisCommandsPerOrder: 2, postgresStatementsPerOrder: 0 });
    // BEGIN, UPDATE, INSERT, COMMIT.
    expect(row('A3').selling).toMatchObject({ redisCommandsPerOrder: 0, postgresStatementsPerOrder: 4 });
    expect(result.naming.map(({ redisCommandsPerId }) => redisCommandsPerId)).toEqual([1, 0]);
  });

  it('checks that rows behave as documented', () => {
    for (const { id, stock, crowd } of result.rows.filter(({ stock }) => stock === 'safe')) {
      expect(crowd.oversold, `${id}, ${stock}`).toBe(0);
    }
    for (const { id, crowd } of result.rows.filter(({ limit }) => limit === 'safe')) {
      expect(crowd.buyersAboveLimit, id).toBe(0);
    }
  });

  it('draws a page without other files, and a chart', async () => {
    const page = await readFile(join(folder, 'page.html'), 'utf8');
    expect(page.match(/<svg /g)).toHaveLength(5);
    expect(page).not.toMatch(/<script|<link|\bsrc=|@import/);
    for (const { id, title } of result.rows) expect(page).toContain(`<td>${id}</td><td>${title}</td>`);
    const chart = await readFile(join(folder, 'chart.svg'), 'utf8');
    expect(chart).toMatch(/^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
    expect(chart).not.toMatch(/NaN|undefined|Infinity/);
  });
});
