/** What take.lua replies and writes, order by order. */
import { describe, expect, it } from 'vitest';
import { type Hash, NOW_S, NOW_US, runScript, type Stored } from '../../../support/engine/run-script.ts';

const SEGMENT: Hash = {
  ...{ generation: '4', state: 'open', left: '7', limit: '3', seq: '8', tail: '1008', committed: '6' },
  ...{ committedOrders: '20', orders: '25', taken: '30', returned: '5', 'lane:2': '500' },
  rules: 'r1',
};
const LANE = 'lane:2';
const NOW_MS = NOW_S * 1_000 + Math.floor(NOW_US / 1_000);

interface Spec {
  readonly lines?: string;
  readonly notes?: string;
  /** Fields of the segment that differ; `null` for one that is missing. */
  readonly segment?: Readonly<Record<string, string | null>>;
  readonly buyers?: Hash;
  readonly log?: Stored[string];
  readonly attempt?: Partial<typeof ATTEMPT>;
  readonly words?: string;
}

const ATTEMPT = {
  ...{ generation: 4, lane: 2, ticket: 501, maxLogOrders: 100, answered: 500 },
  ...{ knownSeq: 8, knownTail: '1008', knownOrders: 25, madeBefore: 0, rules: 'r1' },
};

function take({ lines = '11 anna 1 ', notes = '', segment = {}, buyers, log, attempt, words }: Spec = {}) {
  const fields = Object.fromEntries(
    Object.entries({ ...SEGMENT, ...segment }).flatMap(([name, value]) =>
      value === null ? [] : [[name, value]],
    ),
  );
  const given = words ?? Object.values({ ...ATTEMPT, ...attempt }).join(' ');
  const stored = { segment: fields, ...(buyers && { buyers }), ...(log && { log }) };
  return runScript('purchase/take', stored, ['segment', 'buyers', 'log'], [given, lines, notes]);
}

const entry = (lines: string, orders: string, notes?: string) => ({
  log: [['4-9', ['p', '1008', 'n', orders, 'o', lines, ...(notes === undefined ? [] : ['x', notes])]]],
});
const sold = (left: string, tail: string, orders: string, taken: string) => ({
  segment: { left, seq: '9', tail, orders, taken, [LANE]: '501' },
});
const NOTHING_BUT_TICKET = { segment: { [LANE]: '501' } };
const MANY_IDS = Array.from({ length: 25 }, (_, i) => String(300 + i));

describe('a take', () => {
  it.each<[string, Spec, unknown, object]>([
    [
      'of one order for one unit',
      {},
      [9, 6, 6, 26, 5],
      { buyers: { anna: '11:1:9:' }, ...sold('6', '11', '26', '31'), ...entry('11 anna 1 ', '26') },
    ],
    [
      'of all units that are left',
      { lines: '11 anna 1 \n12 ben 1 ', segment: { left: '2' } },
      [9, 6, 0, 27, 5],
      {
        buyers: { anna: '11:1:9:', ben: '12:1:9:' },
        ...sold('0', '11', '27', '32'),
        ...entry('11 anna 1 \n12 ben 1 ', '27'),
      },
    ],
    [
      'with a note',
      { notes: '11 {"a":1}' },
      [9, 6, 6, 26, 5],
      {
        buyers: { anna: '11:1:9:' },
        ...sold('6', '11', '26', '31'),
        ...entry('11 anna 1 ', '26', '11 {"a":1}'),
      },
    ],
    [
      'of orders for several units, and with a key',
      { lines: '11 anna 2 k1\n12 ben 1 ' },
      [9, 6, 4, 27, 5],
      {
        buyers: { anna: '11:2:9:k1', ben: '12:1:9:' },
        ...sold('4', '11', '27', '33'),
        ...entry('11 anna 2 k1\n12 ben 1 ', '27'),
      },
    ],
    [
      'of one order for all units that are left, up to the limit',
      { lines: '11 anna 3 ', segment: { left: '3' } },
      [9, 6, 0, 26, 5],
      { buyers: { anna: '11:3:9:' }, ...sold('0', '11', '26', '33'), ...entry('11 anna 3 ', '26') },
    ],
    [
      'of a buyer who has bought before, up to the limit',
      { lines: '11 anna 1 ', buyers: { anna: '9:1:2:k0 10:1:3:' } },
      [9, 6, 6, 26, 5],
      {
        buyers: { anna: '9:1:2:k0 10:1:3: 11:1:9:' },
        ...sold('6', '11', '26', '31'),
        ...entry('11 anna 1 ', '26'),
      },
    ],
    [
      'of two orders of one buyer',
      { lines: '11 anna 1 \n12 anna 1 ' },
      [9, 6, 5, 27, 5],
      {
        buyers: { anna: '11:1:9: 12:1:9:' },
        ...sold('5', '11', '27', '32'),
        ...entry('11 anna 1 \n12 anna 1 ', '27'),
      },
    ],
    [
      'of two orders of one buyer, of which only one is within the limit',
      { lines: '11 anna 2 \n12 anna 2 \n13 ben 1 ' },
      [9, 6, 4, 27, 5, 1, 'limit 11', 1],
      {
        buyers: { anna: '11:2:9:', ben: '13:1:9:' },
        ...sold('4', '11', '27', '33'),
        ...entry('11 anna 2 \n13 ben 1 ', '27'),
      },
    ],
    [
      'of an order twice, and another order under the same key',
      { lines: '11 anna 1 k1\n11 anna 1 k1\n12 anna 1 k1\n13 anna 2 k1' },
      [9, 6, 6, 26, 5, 1, 'replay 11 1 9', 'replay 11 1 9', 'mismatch 11 1'],
      {
        buyers: { anna: '11:1:9:k1' },
        ...sold('6', '11', '26', '31'),
        ...entry('11 anna 1 k1', '26'),
      },
    ],
    [
      'of orders that the buyer has, by id, by key, and for other units',
      { lines: '9 anna 1 \n12 anna 1 k0\n9 anna 2 \n13 anna 2 k0', buyers: { anna: '9:1:2:k0' } },
      [9, 6, 7, 25, 5, 'replay 9 1 2', 'replay 9 1 2', 'mismatch 9 1', 'mismatch 9 1'],
      NOTHING_BUT_TICKET,
    ],
    [
      'of a repeated order without a key, beside one without a key',
      { lines: '12 anna 1 ', buyers: { anna: '9:1:2:' } },
      [9, 6, 6, 26, 5],
      {
        buyers: { anna: '9:1:2: 12:1:9:' },
        ...sold('6', '12', '26', '31'),
        ...entry('12 anna 1 ', '26'),
      },
    ],
    [
      'of several orders of a buyer who has bought before, by id, by key, and beyond the limit',
      {
        lines: '11 anna 1 k1\n12 anna 1 \n13 anna 1 \n11 anna 1 \n14 anna 1 k1',
        buyers: { anna: '9:1:2:k0' },
      },
      [9, 6, 5, 27, 5, 1, 1, 'limit 9 11 12', 'replay 11 1 9', 'replay 11 1 9'],
      {
        buyers: { anna: '9:1:2:k0 11:1:9:k1 12:1:9:' },
        ...sold('5', '11', '27', '32'),
        ...entry('11 anna 1 k1\n12 anna 1 ', '27'),
      },
    ],
    [
      'beyond the limit, without an order of the buyer',
      { lines: '11 anna 4 ' },
      [9, 6, 7, 25, 5, 'limit '],
      NOTHING_BUT_TICKET,
    ],
    [
      'beyond the limit, which names at most 20 orders',
      { buyers: { anna: MANY_IDS.map((id) => `${id}:1:2:`).join(' ') } },
      [9, 6, 7, 25, 5, `limit ${MANY_IDS.slice(0, 20).join(' ')}`],
      NOTHING_BUT_TICKET,
    ],
    [
      'of more units than are left, and of fewer',
      { lines: '11 anna 3 k1\n12 ben 2 k2', segment: { left: '2' } },
      [9, 6, 0, 26, 5, 0, 1],
      {
        buyers: { ben: '12:2:9:k2' },
        ...sold('0', '12', '26', '32'),
        ...entry('12 ben 2 k2', '26'),
      },
    ],
    [
      'of plain orders, one of which finds no units left',
      { lines: '11 anna 1 \n12 ben 1 ', segment: { left: '1' } },
      [9, 6, 0, 26, 5, 1, 0],
      {
        buyers: { anna: '11:1:9:' },
        ...sold('0', '11', '26', '31'),
        ...entry('11 anna 1 ', '26'),
      },
    ],
    [
      'that no order passes, because nothing is left',
      { segment: { left: '0' } },
      [9, 6, 0, 25, 5, 0],
      NOTHING_BUT_TICKET,
    ],
    [
      'of plain orders under the limit 0',
      { segment: { limit: '0' } },
      [9, 6, 7, 25, 5, 'limit '],
      NOTHING_BUT_TICKET,
    ],
    ['of nothing', { lines: '' }, [9, 6, 7, 25, 5], NOTHING_BUT_TICKET],
    [
      'from a segment that an old version has built, which counts no returns',
      { lines: '', segment: { returned: null } },
      [9, 6, 7, 25, 0],
      NOTHING_BUT_TICKET,
    ],
    [
      'that fills the log',
      { attempt: { maxLogOrders: 6 } },
      [9, 6, 6, 26, 5],
      { buyers: { anna: '11:1:9:' }, ...sold('6', '11', '26', '31'), ...entry('11 anna 1 ', '26') },
    ],
    [
      'by a lane that is new to the segment, and knows no entry',
      { attempt: { lane: 3, answered: 0, knownSeq: 0, knownTail: '', knownOrders: 0, rules: '' } },
      [9, 6, 6, 26, 5],
      {
        buyers: { anna: '11:1:9:' },
        segment: { left: '6', seq: '9', tail: '11', orders: '26', taken: '31', 'lane:3': '501' },
        ...entry('11 anna 1 ', '26'),
      },
    ],
    [
      'with the first ticket of a lane',
      { attempt: { lane: 3, ticket: 1, answered: 0 } },
      [9, 6, 6, 26, 5],
      {
        buyers: { anna: '11:1:9:' },
        segment: { left: '6', seq: '9', tail: '11', orders: '26', taken: '31', 'lane:3': '1' },
        ...entry('11 anna 1 ', '26'),
      },
    ],
    [
      'by a lane that knows an older entry, from a segment without rules',
      { attempt: { knownSeq: 7, knownTail: '1007' }, segment: { rules: null } },
      [9, 6, 6, 26, 5],
      { buyers: { anna: '11:1:9:' }, ...sold('6', '11', '26', '31'), ...entry('11 anna 1 ', '26') },
    ],
    [
      'by a lane whose newer ticket was not answered',
      { segment: { [LANE]: '500' }, attempt: { answered: 499 } },
      [9, 6, 6, 26, 5],
      { buyers: { anna: '11:1:9:' }, ...sold('6', '11', '26', '31'), ...entry('11 anna 1 ', '26') },
    ],
  ])('%s', (_, spec, reply, written) => {
    const run = take(spec);
    expect(run.reply).toEqual(reply);
    expect(run.written).toEqual(written);
  });

  it('of the first orders of a segment makes the hash of buyers a table, and leaves no other buyer there', () => {
    const run = take({
      segment: { seq: '0', tail: '', orders: '0', committedOrders: '0', taken: '0', committed: '0' },
      attempt: { knownSeq: 0, knownTail: '', knownOrders: 0 },
    });
    expect(run.reply).toEqual([1, 0, 6, 1, 5]);
    expect(run.written).toEqual({
      buyers: { anna: '11:1:1:' },
      segment: { left: '6', seq: '1', tail: '11', orders: '1', taken: '1', [LANE]: '501' },
      log: [['4-1', ['p', '', 'n', '1', 'o', '11 anna 1 ']]],
    });
    const toBuyers = run.commands.filter((command) => / buyers /.test(command));
    expect(toBuyers.map((command) => command.trimEnd())).toEqual([
      'HMGET buyers anna',
      'HSET buyers',
      'HSET buyers anna 11:1:1:',
      'HDEL buyers',
    ]);
    // A Redis with its default settings packs values of up to 64 characters.
    expect(toBuyers[1]).toBe(`HSET buyers   ${' '.repeat(65)}`);
    expect(take({}).commands.filter((command) => / buyers {2}/.test(command))).toEqual([]);
  });
});

it('of a plain batch, for which there is just enough, costs half as much as another', () => {
  const batch = (key: string) =>
    Array.from({ length: 200 }, (_, i) => `${1_000 + i} buyer-${i} 1 ${i === 199 ? key : ''}`).join('\n');
  const stepsOf = (lines: string) =>
    take({ lines, segment: { left: '200', limit: '1' }, attempt: { maxLogOrders: 1_000 } }).steps;
  expect(stepsOf(batch(''))).toBeLessThan(stepsOf(batch('k')) * 0.6);
});

describe('a take that is refused writes nothing', () => {
  it.each<[string, Spec, unknown]>([
    ['of another generation', { attempt: { generation: 5 } }, 'stale'],
    ...['loaded', 'frozen', 'lost'].map((state): [string, Spec, unknown] => [
      `from a segment that is ${state}`,
      { segment: { state } },
      state,
    ]),
    ['from a segment without a state', { segment: { state: null } }, 'no state'],
    ['with the ticket that the segment remembers', { attempt: { ticket: 500, answered: 499 } }, 'superseded'],
    ['with an older ticket', { attempt: { ticket: 499, answered: 499 } }, 'superseded'],
    [
      'with the remembered ticket, from a paused segment',
      { segment: { state: 'paused' }, attempt: { ticket: 500, answered: 499 } },
      'superseded',
    ],
    ['too late', { attempt: { madeBefore: NOW_MS } }, `late ${NOW_MS}`],
    ['too late, of no orders', { lines: '', attempt: { madeBefore: 1 } }, `late ${NOW_MS}`],
    ['for 0 units', { lines: '11 anna 0 ' }, 'error BADARG quantity of order 11'],
    ['for 0 units, beside another', { lines: '11 anna 2 k\n12 ben 0 ' }, 'error BADARG quantity of order 12'],
    ...[
      '11 anna 1',
      '11 anna 1 \n\n12 ben 1 ',
      ' 11 anna 1 ',
      '11 anna 1 \nx ben 1 ',
      '11 anna -1 ',
      '1',
    ].map((lines): [string, Spec, unknown] => [
      `with the line ${JSON.stringify(lines)}`,
      { lines },
      'error BADARG the orders are not lines of four words',
    ]),
    [
      'without a ticket',
      { words: '4 2 100 500 8 1008 25 0 r1' },
      'error BADARG the attempt 4 2 100 500 8 1008 25 0 r1',
    ],
    ...['left', 'limit', 'seq', 'tail', 'committed', 'committedOrders', 'orders', 'taken'].map(
      (field): [string, Spec, unknown] => [
        `from a segment without ${field}`,
        { segment: { [field]: null } },
        'error CORRUPT a counter of the segment is missing or not a number',
      ],
    ),
  ])('%s', (_, spec, reply) => {
    const run = take(spec);
    expect(run.reply).toEqual(reply);
    expect(run.written).toEqual({});
  });
});

describe('a take that is refused leaves its ticket, so that older attempts are refused too,', () => {
  it.each<[string, Spec, unknown]>([
    ['from a paused segment', { segment: { state: 'paused' } }, 'paused'],
    ['from a closed segment', { segment: { state: 'closed' } }, 'closed'],
    ['under other rules', { attempt: { rules: 'r2' } }, 'outdated'],
    ['beyond what the log may hold', { attempt: { maxLogOrders: 5 } }, 'busy'],
  ])('%s', (_, spec, reply) => {
    const run = take(spec);
    expect(run.reply).toEqual(reply);
    expect(run.written).toEqual(NOTHING_BUT_TICKET);
  });
});

it('a take is made in its last millisecond, and reads the clock only if it has one', () => {
  const inTime = take({ attempt: { madeBefore: NOW_MS + 1 } });
  expect(inTime.reply).toEqual(take().reply);
  expect(inTime.commands).toContain('TIME');
  expect(take().commands).not.toContain('TIME');
  expect(take({ attempt: { madeBefore: NOW_MS }, segment: { tail: '2008' } }).reply).toBe('lost');
});

describe('a segment that has lost writes', () => {
  const MARK = { segment: { state: 'lost', lost: '8 25 1008' } };

  it.each<[string, Spec, object]>([
    ['because it has forgotten an answered ticket', { segment: { [LANE]: '499' } }, MARK],
    ['because it has forgotten the lane', { segment: { [LANE]: null } }, MARK],
    ['because an entry is missing', { segment: { seq: '7', tail: '1007' } }, MARK],
    ['because it has another entry instead', { segment: { tail: '2008' } }, MARK],
    [
      'while it is paused, and by an empty take',
      { segment: { tail: '2008', state: 'paused' }, lines: '' },
      MARK,
    ],
    ['while it is closed', { segment: { tail: '2008', state: 'closed' } }, MARK],
    [
      'because it has no entry at all',
      { segment: { seq: '0', tail: '' }, attempt: { knownSeq: 1, knownTail: '9', knownOrders: 1 } },
      { segment: { state: 'lost', lost: '1 1 9' } },
    ],
  ])('is marked, %s', (_, spec, written) => {
    const run = take(spec);
    expect(run.reply).toBe('lost');
    expect(run.written).toEqual(written);
  });
});
