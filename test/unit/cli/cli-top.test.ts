import { describe, expect, test } from 'vitest';
import { bar, cut } from '../../../src/cli/terminal/fit.ts';
import { looks } from '../../../src/cli/terminal/look.ts';
import { pictureLines } from '../../../src/cli/top/picture-text.ts';
import { SoldRates } from '../../../src/cli/top/sold-rates.ts';
import { watch } from '../../../src/cli/top/watch.ts';
import type { ConsolePicture, ShownSale } from '../../../src/operations/console/console-operations.ts';

const sale = (id: string, changes: Partial<ShownSale> = {}): ShownSale => ({
  ...{ archivedAt: undefined, endsAt: undefined },
  ...{
    id,
    title: '',
    state: 'open',
    startsAt: '2020-01-01T00:00:00Z',
    stock: 90,
    movedUnits: 10,
    segments: 8,
  },
  ...{ perBuyerLimit: 1, remaining: 40, generation: 1, committedOrders: 50, committedUnits: 55 },
  ...changes,
});

function picture(sales: readonly ShownSale[], changes: Partial<ConsolePicture> = {}): ConsolePicture {
  return {
    ...{ at: '2026-11-27T20:00:00.000Z', process: 'a:1', version: '1.0.0', others: [] },
    node: {
      value: {
        perSecond: { purchases: 1_234, orders: 3.25, refusals: 1_230, failures: 0, byCode: {} },
        ...{ connections: 1, queued: 2, waiting: 3, sync: { lagOrders: 12, lagSeconds: 0.25 } },
      },
      ageMs: 0,
    },
    totals: { value: [{ state: 'open', sales: 2, unsold: 1_000 }], ageMs: 0 },
    list: { value: { sales }, ageMs: 0 },
    ...changes,
  };
}

const linesOf = (shown: ConsolePicture, rows?: number, rates: [string, number][] = []) =>
  pictureLines(shown, { url: 'http://here', rates: new Map(rates), ...(rows !== undefined && { rows }) });

describe('a picture', () => {
  test('has the figures of the node, of the shop and of each sale', () => {
    const lines = linesOf(picture([sale('tickets', { title: 'Front row' })]), undefined, [['tickets', 7.5]]);
    expect(lines.slice(1)).toEqual([
      'node       1,234 requests/s: 3.3 orders/s, 1,230 refusals/s, 0 not served/s',
      '           1 connection, 2 queued, 3 wait for their commit',
      'sync       12 orders behind, 250 ms',
      'sales      2 open with 1,000 unsold units',
      'nodes      a:1 1.0.0 (this one)',
      '',
      'sale     state    left   of  sold/s  orders  not in Pg                title',
      'tickets  selling    40  100     7.5      50          5  ████▊·······  Front row',
    ]);
  });

  test('has what the node does for those in queues, and how many wait and have offers', () => {
    const queued = sale('tickets', {
      remaining: 0,
      committedUnits: 100,
      behindHead: 1_200,
      offeredUnits: 60,
    });
    const shown = picture([queued, sale('coupons')]);
    const queue = { perSecond: { joins: 310.4, polls: 4_200, failures: 0 }, streams: 1 };
    const lines = linesOf({ ...shown, node: { value: { ...shown.node.value!, queue } } });
    expect(lines[2]).toBe('queue      310 joins/s, 4,200 polls/s, 0 not served/s, 1 stream');
    expect(lines.slice(-3).map((line) => line.trimEnd())).toEqual([
      'sale     state      left   of  waiting  offered  sold/s  orders  not in Pg                title',
      'tickets  in offers     0  100    1,200       60       -      50          0  ············',
      'coupons  selling      40  100        -        -       -      50          5  ████▊·······',
    ]);
    const first = linesOf({ ...shown, node: { value: { ...shown.node.value!, queue: { streams: 0 } } } });
    expect(first[2]).toBe('queue      rates are known in a second, 0 streams');
  });

  test('names other nodes, their versions and in which settings they differ', () => {
    const others = [
      { process: 'b:2', version: '1.0.0', differs: [] },
      { process: 'c:3', version: '0.9.0', differs: ['BUYER_AUTH'] },
    ];
    const text = linesOf(picture([], { others })).join('\n');
    expect(text).toContain(
      'nodes      a:1 1.0.0 (this one), b:2, c:3 0.9.0\n           c:3 has other BUYER_AUTH\n',
    );
    expect(text).toMatch(/There are no such sales\.$/);
  });

  test('says what can’t be read now, and why the node can’t sell', () => {
    const { value } = picture([]).node;
    const old = linesOf(
      picture([], {
        node: {
          value: { ...value!, notReady: 'Redis is away', deadLetters: 1, sync: undefined },
          problem: 'slow',
        },
        totals: { problem: 'no answer' },
        list: { value: { sales: [sale('x')] }, ageMs: 2_500, problem: 'no answer' },
      }),
    ).join('\n');
    expect(old).toMatch(/^NOT READY {2}Redis is away$/m);
    expect(old).toMatch(/^old {8}the node can't be read now: slow$/m);
    expect(old).toMatch(/^sync {7}this process runs none$/m);
    expect(old).toMatch(/^events {5}1 dead letter$/m);
    expect(old).toMatch(/^sales {6}can't be counted now: no answer$/m);
    expect(old).toMatch(/^The sales can't be read now: no answer\. These are 2\.5 s old\.$/m);
    const { value: totals } = picture([]).totals;
    const oldTotals = linesOf(
      picture([], {
        totals: { value: totals!, ageMs: 2_500, problem: 'no answer' },
        node: { problem: 'slow' },
      }),
    ).join('\n');
    expect(oldTotals).toMatch(/^sales {6}2 open with 1,000 unsold units, 2\.5 s ago$/m);
    expect(oldTotals).toMatch(/^ {11}can't be counted now: no answer$/m);
    expect(oldTotals).toMatch(/^node {7}can't be read now: slow$/m);
    const none = linesOf(picture([], { node: {}, list: { problem: 'no answer' } })).join('\n');
    expect(none).toMatch(/^node {7}reading …$/m);
    expect(none).toMatch(/The sales can't be read now: no answer\.$/);
  });

  test.each<[Partial<ShownSale>, string]>([
    [{ state: 'paused' }, 'paused'],
    [{ state: 'closed', archivedAt: 'T' }, 'archived'],
    [{ remaining: 0 }, 'sold out'],
    [{ remaining: undefined }, 'rebuilding'],
    [{ startsAt: '2100-01-01T00:00:00Z' }, 'not started'],
    [{ endsAt: '2021-01-01T00:00:00Z' }, 'ended'],
    [{ remaining: 0, behindHead: 0, offeredUnits: 45, committedUnits: 100 }, 'in offers'],
    [{ remaining: 0, behindHead: 0, offeredUnits: 0, committedUnits: 40 }, 'in offers'],
    [{ remaining: 0, behindHead: 0, committedUnits: 100 }, 'in offers'],
    [{ remaining: 0, committedUnits: 40 }, 'sold out'],
    [{ remaining: 0, behindHead: 9, offeredUnits: 0, committedUnits: 100 }, 'sold out'],
    [{ remaining: 1, behindHead: 9, offeredUnits: 99, committedUnits: 99 }, 'selling'],
  ])('%o is %s', (changes, state) => {
    expect(linesOf(picture([sale('x', changes)])).at(-1)).toMatch(new RegExp(`^x +${state} `));
  });

  test('fits into the rows, and says how many sales are not shown', () => {
    const sales = Array.from({ length: 20 }, (_, i) => sale(`sale-${i}`));
    const high = linesOf(picture(sales), 20);
    expect(high).toHaveLength(20);
    expect(high.at(-1)).toBe('9 older sales');
    const low = linesOf(picture(sales, { list: { value: { sales, next: 'x' } } }), 10);
    expect(low).toHaveLength(10);
    expect(low.at(-1)).toBe('16 and more older sales');
    expect(low.join('\n')).not.toContain('connection');
  });

  test('is one line for each sale, whatever the ids and titles of others contain', () => {
    const long = sale('a'.repeat(64), { title: 'x\u001b[2J\ny' });
    expect(linesOf(picture([long])).at(-1)).toMatch(/^a{23}… .* x\\u001b\[2J\\ny$/);
  });
});

test('units sold a second, over the last five seconds', () => {
  const rates = new SoldRates();
  const at = (seconds: number, remaining: number | undefined) =>
    rates
      .add({
        at: new Date(seconds * 1_000).toISOString(),
        list: { value: { sales: [sale('x', { remaining })] }, ageMs: 0 },
      })
      .get('x');
  expect(at(0, 100)).toBeUndefined();
  expect(at(1, 90)).toBe(10);
  expect(at(2, undefined)).toBeUndefined();
  expect(at(3, 90)).toBeUndefined();
  expect(at(4, 95)).toBe(0);
  for (let second = 5; second <= 20; second++) at(second, 90);
  expect(at(21, 80)).toBe(2);
  expect(at(3_600, 10)).toBeUndefined();
  expect(at(3_601, 9)).toBe(1);
  expect(rates.add({ at: 'now', list: undefined }).size).toBe(0);
});

test('units of offers are not sold', () => {
  const rates = new SoldRates();
  const at = (seconds: number, changes: Partial<ShownSale>) =>
    rates
      .add({
        at: new Date(seconds * 1_000).toISOString(),
        list: { value: { sales: [sale('x', { behindHead: 0, ...changes })] }, ageMs: 0 },
      })
      .get('x');
  expect(at(0, { remaining: 100, committedUnits: 0, offeredUnits: 0 })).toBeUndefined();
  expect(at(1, { remaining: 0, committedUnits: 60, offeredUnits: 60 })).toBe(0);
  expect(at(2, { remaining: 0, committedUnits: 100, offeredUnits: 80 })).toBe(10);
  // More offers than are counted.
  expect(at(3, { remaining: 0, committedUnits: 100 })).toBeUndefined();
});

test('a lost connection is reported and made again; a first one that fails is an error', async () => {
  let calls = 0;
  const client = {
    async *pictures() {
      calls++;
      if (calls === 2) throw new Error('gone');
      yield picture([]);
    },
  };
  const seen: string[] = [];
  const end = new AbortController();
  for await (const each of watch(client, { limit: 1 }, end.signal, 0)) {
    seen.push('lost' in each ? each.lost : 'picture');
    if (seen.length === 4) end.abort();
  }
  expect(seen).toEqual(['picture', 'the node has ended its pictures', 'gone', 'picture']);

  const first = watch(client, { limit: 1 }, new AbortController().signal, 0);
  calls = 1;
  await expect(first.next()).rejects.toThrow('gone');
});

describe('in a terminal', () => {
  test('a line is cut to its width, without what sets its look', () => {
    expect(cut('abcdef', 3)).toBe('abc');
    expect(cut('\u001b[1mabc\u001b[0mdef', 4)).toBe('\u001b[1mabc\u001b[0md');
    expect(cut('\u001b[1mabcdef\u001b[0m', 2)).toBe('\u001b[1mab\u001b[0m');
    expect(cut('🎫🎫', 1)).toBe('🎫');
  });

  test('a bar shows even the last unit', () => {
    expect([1, 0.5, 0.0001, 0, 2, -1].map((share) => bar(share, 4))).toEqual([
      '████',
      '██··',
      '▏···',
      '····',
      '████',
      '····',
    ]);
  });

  test.each([
    [{ isTTY: true }, {}, '\u001b[1mx\u001b[0m'],
    [{ isTTY: true }, { NO_COLOR: '1' }, 'x'],
    [{ isTTY: true }, { TERM: 'dumb' }, 'x'],
    [{}, {}, 'x'],
  ])('%o %o: text is %j', (stream, env, text) => expect(looks(stream, env).bold('x')).toBe(text));
});
