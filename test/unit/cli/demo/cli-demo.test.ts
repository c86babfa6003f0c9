import { describe, expect, test } from 'vitest';
import { judge } from '../../../../src/cli/demo/judge.ts';
import { type Frame, frameLines } from '../../../../src/cli/demo/opening.ts';
import { demoExitCode, demoReport, demoText } from '../../../../src/cli/demo/report.ts';
import { drawBuyers, dueMs, scenarioFrom, scenarioName } from '../../../../src/cli/demo/scenario.ts';
import { settle } from '../../../../src/cli/demo/settle.ts';
import { type CrowdResult, Tally } from '../../../../src/cli/demo/tally.ts';
import { looks } from '../../../../src/cli/terminal/look.ts';
import { InvalidInput } from '../../../../src/engine/errors.ts';
import type { VerifyReport } from '../../../../src/operations/sale-operations.ts';
import { setClockAhead } from '../../../support/clock-ahead.ts';

const STOCK = 100;
const REQUESTS = 20_000;

function crowd(changes: Partial<CrowdResult> = {}): CrowdResult {
  const answers = { committed: 90, accepted: 10, sold_out: 15_000, limit_reached: 4_900 };
  const measured = { seconds: 2, p50Ms: 4.5678, p99Ms: 12.5 };
  return {
    requests: REQUESTS,
    ...measured,
    answers,
    buyersAsked: 500,
    orders: 100,
    buyersServed: 100,
    ...changes,
  };
}

function verified(changes: Partial<VerifyReport> = {}): VerifyReport {
  const identity = {
    name: 'truth',
    left: [{ name: 'initial', units: 100 }],
    right: [
      { name: 'unsold', units: 0 },
      { name: 'in live orders', units: 100 },
    ],
    difference: 0,
  };
  const counts = { rejectedOrders: 0, lostOrders: 0, committedOrders: 100, distinctBuyers: 100 };
  return {
    saleId: 'demo-x',
    ok: true,
    identities: [identity],
    differences: [],
    findings: [],
    ...counts,
    ...changes,
  };
}

const verdict = (seen: CrowdResult, report: VerifyReport) => judge(STOCK, REQUESTS, seen, report);

describe('the verdict', () => {
  test('holds', () => {
    expect(verdict(crowd(), verified())).toEqual({
      requests: REQUESTS,
      committed: 100,
      distinctBuyers: 100,
      expected: 100,
      oversold: 0,
      undersold: 0,
      verify: 'ok',
      requestsPerSecond: 10_000,
      p50Ms: 4.57,
      p99Ms: 12.5,
      accepted: 100,
      refused: { sold_out: 15_000, limit_reached: 4_900 },
      answersAgree: true,
      holds: true,
      failures: [],
    });
  });

  test.each(['busy', 'unavailable', 'unknown', 'internal', 'http_502'])(
    'a buyer whose only answer was %s need not have a unit',
    (code) => {
      const answers = { committed: 39, limit_reached: 19_960, [code]: 1 };
      const seen = crowd({ answers, buyersAsked: 40, orders: 39, buyersServed: 39 });
      const sold = (orders: number) => verified({ committedOrders: orders, distinctBuyers: orders });
      expect(verdict(seen, sold(39))).toMatchObject({ holds: true, undersold: 0 });
      expect(verdict(seen, sold(38)).holds).toBe(false);
      // Only some of them leave open whether there is an order.
      expect(verdict(seen, sold(40)).holds).toBe(!['busy', 'unavailable'].includes(code));
    },
  );

  test('fewer buyers than units: one for each buyer must be sold', () => {
    const answers = { committed: 40, limit_reached: 19_960 };
    const seen = crowd({ answers, buyersAsked: 40, orders: 40, buyersServed: 40 });
    const found = verdict(seen, verified({ committedOrders: 40, distinctBuyers: 40 }));
    expect(found).toMatchObject({ holds: true, expected: 40, undersold: 0 });
  });

  test('an answer that was left open may or may not be an order', () => {
    const answers = { committed: 98, unknown: 2, no_answer: 1, sold_out: 19_899 };
    const seen = crowd({ answers, orders: 98, buyersServed: 98 });
    expect(verdict(seen, verified()).holds).toBe(true);
    const short = verdict(seen, verified({ committedOrders: 97, distinctBuyers: 97 }));
    expect(short).toMatchObject({ holds: false, answersAgree: false, undersold: 3 });
  });

  const broken: [string, CrowdResult, VerifyReport, object][] = [
    [
      'oversold',
      crowd(),
      verified({ committedOrders: 103, distinctBuyers: 103 }),
      { oversold: 3, undersold: 0 },
    ],
    [
      'undersold',
      crowd(),
      verified({ committedOrders: 99, distinctBuyers: 99 }),
      { undersold: 1, oversold: 0 },
    ],
    ['one buyer has two', crowd(), verified({ distinctBuyers: 99 }), { distinctBuyers: 99 }],
    ['verify failed', crowd(), verified({ ok: false }), { verify: 'failed', answersAgree: true }],
    ['two answers name one order', crowd({ orders: 99 }), verified(), { answersAgree: false }],
    ['an order was rejected', crowd(), verified({ rejectedOrders: 1 }), { answersAgree: false }],
    ['not every request ended', crowd({ requests: 19_999 }), verified(), { answersAgree: true }],
    [
      'an order that no answer names',
      crowd({ answers: { committed: 99 }, orders: 99 }),
      verified(),
      { answersAgree: false },
    ],
  ];
  test.each(broken)('%s: exit code 1', (_, seen, report, expected) => {
    const found = verdict(seen, report);
    expect(found).toMatchObject({ holds: false, ...expected });
    expect(found.failures).not.toEqual([]);
    expect(demoExitCode(found)).toBe(1);
  });
});

describe('the report', () => {
  const scenario = scenarioFrom({ seed: '7' });
  const node = { backendName: 'redis', databaseName: 'postgres' };

  test('says that it holds, with every number and equation', () => {
    const report = demoReport(scenario, verdict(crowd(), verified()), verified(), node, { workers: 2 });
    const text = demoText(report);
    expect(demoExitCode(report)).toBe(0);
    expect(report).toMatchObject({
      scenario: 'S1',
      backend: 'redis',
      database: 'postgres',
      seed: 7,
      workers: 2,
    });
    expect(text).toMatch(/^requests {2,}20,000 by 200 clients, seed 7$/m);
    expect(text).toMatch(/^refused: sold_out {2,}15,000$/m);
    expect(text).toMatch(/^ {2}truth {2,}100 initial = 0 unsold \+ 100 in live orders$/m);
    expect(text).toContain('Holds: exactly 100 units went to 100 buyers.');
    expect(text).toMatch(
      /Measured with client and server \(2 workers; redis, postgres\) on the same machine/,
    );
  });

  test('says what does not hold', () => {
    const books = verified({
      ok: false,
      committedOrders: 103,
      distinctBuyers: 102,
      findings: ['buyer 7 has 2 units'],
    });
    const text = demoText(demoReport(scenario, verdict(crowd(), books), books, node, { workers: 2 }));
    expect(text).toContain(
      'DOES NOT HOLD: 3 more units sold than the 100 for sale; 103 orders belong to only 102 buyers',
    );
    expect(text).toContain('buyer 7 has 2 units');
  });
});

describe('the scenario', () => {
  test('is S1, with a new seed each time', () => {
    const { seed, ...rest } = scenarioFrom({});
    expect(rest).toEqual({ stock: 100, segments: 8, buyers: 500, requests: 20_000, concurrency: 200 });
    expect(Number.isInteger(seed)).toBe(true);
    expect(scenarioName(scenarioFrom({ stock: '1' }))).toBe('S1 with other stock');
  });

  test('lists all faults at once', () => {
    const call = () => scenarioFrom({ stock: '0', concurrency: 'many', buyers: '5' });
    expect(call).toThrow(InvalidInput);
    expect(call).toThrow(/--stock is "0", but must be .*; --concurrency is "many", but must be /);
  });

  test('the same seed draws the same buyers, all of them, evenly', () => {
    const buyers = drawBuyers(scenarioFrom({ seed: '1' }));
    expect(drawBuyers(scenarioFrom({ seed: '1' }))).toEqual(buyers);
    expect(drawBuyers(scenarioFrom({ seed: '2' }))).not.toEqual(buyers);
    const times = new Map<number, number>();
    for (const buyer of buyers) times.set(buyer, (times.get(buyer) ?? 0) + 1);
    expect([...times.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, i) => i));
    expect(Math.max(...times.values())).toBeLessThan(80);
  });
});

test('the tally counts answers, orders and buyers', () => {
  const tally = new Tally();
  tally.add(1, 201, '{"orderId":"10","status":"committed"}', 1);
  tally.add(2, 202, '{"orderId":"11","status":"accepted"}', 2);
  tally.add(1, 409, '{"code":"limit_reached","orderIds":["10"]}', 3);
  tally.add(3, 502, '<html>', 4);
  tally.add(3, 0, '', 5);
  expect(tally.result(2)).toMatchObject({
    requests: 5,
    seconds: 2,
    answers: { committed: 1, accepted: 1, limit_reached: 1, http_502: 1, no_answer: 1 },
    buyersAsked: 3,
    orders: 2,
    buyersServed: 2,
  });
  expect(tally.result(2).p50Ms).toBeCloseTo(3, 1);
});

describe('settling', () => {
  const never = new AbortController().signal;

  test('waits for accepted orders, and for two equal reports', async () => {
    const counts = [0, 60, 99, 100, 100, 100];
    let asked = 0;
    const verify = async () => verified({ committedOrders: counts[asked++] ?? 100 });
    const report = await settle({ verify }, 'demo-x', 100, never);
    expect(report.committedOrders).toBe(100);
    expect(asked).toBe(5);
  });

  test('gives up at the limit with the last report', async () => {
    const verify = async () => verified({ committedOrders: 99 });
    expect((await settle({ verify }, 'demo-x', 100, never, 50)).committedOrders).toBe(99);
  });

  test('does not give up because the clock is set ahead', async () => {
    setClockAhead();
    const counts = [60, 99, 100, 100];
    let asked = 0;
    const verify = async () => verified({ committedOrders: counts[asked++] ?? 100 });
    expect((await settle({ verify }, 'demo-x', 100, never)).committedOrders).toBe(100);
  });

  test('ends when it is interrupted', async () => {
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(settle({ verify: async () => verified() }, 'demo-x', 100, signal)).rejects.toThrow('enough');
  });
});

describe('the picture at the beginning', () => {
  const frame: Frame = {
    left: [300, 150, 1, 0],
    full: [300, 300, 300, 300],
    crowd: { requests: 1_000, orders: 749, refusals: 251 },
    seconds: 2.04,
  };
  const terminal = { isTTY: true };

  test('has a bar for each segment, and sums', () => {
    const lines = frameLines(frame, looks(terminal, { NO_COLOR: '1' }), 80);
    expect(
      lines.map((line) => line.replace(/[█·]{5,}/g, (blocks) => `${blocks[0]} x ${blocks.length} `)),
    ).toEqual([
      'segment 0   █ x 58   300',
      `segment 1   ${'█'.repeat(29)}${'·'.repeat(29)}  150`.replace(
        /[█·]{5,}/g,
        (blocks) => `${blocks[0]} x 58 `,
      ),
      'segment 2   ▎· x 57     1',
      'segment 3   · x 58  sold',
      '451 left         749 orders       251 refusals     2.0 s',
    ]);
    for (const columns of [80, 60])
      for (const line of frameLines(frame, looks(terminal, { NO_COLOR: '1' }), columns))
        expect([...line].length).toBeLessThan(columns);
  });

  test('has colours only where they are wanted', () => {
    const plain = frameLines(frame, looks(terminal, { NO_COLOR: '1' }), 80);
    const coloured = frameLines(frame, looks(terminal, {}), 80);
    expect(coloured).not.toEqual(plain);
    expect(coloured.map((line) => line.replaceAll(/\p{Cc}\[\d+m/gu, ''))).toEqual(plain);
  });

  test('more and more requests are due, the last at the end', () => {
    const due = [0, 0.25, 0.5, 0.75, 1].map((place) => dueMs(place, 4_000));
    expect([due[0], due[1], due[4]]).toEqual([0, 2_000, 4_000]);
    const gaps = due.slice(1).map((each, i) => each - due[i]!);
    expect(gaps).toEqual([...gaps].sort((a, b) => b - a));
  });

  test('counts different orders and refusals, and no answer as neither', () => {
    const tally = new Tally();
    tally.add(1, 201, '{"status":"committed","orderId":"7"}', 1);
    tally.add(1, 201, '{"status":"committed","orderId":"7"}', 1);
    tally.add(2, 409, '{"code":"sold_out"}', 1);
    tally.add(3, 503, '{"code":"unavailable"}', 1);
    tally.add(4, 0, '', 1);
    expect(tally.progress).toEqual({ requests: 5, orders: 1, refusals: 1 });
  });
});
