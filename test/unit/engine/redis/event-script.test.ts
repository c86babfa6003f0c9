/** What append-events.lua writes to the event stream, and which consumer groups it finds to have missed events. */
import { describe, expect, it } from 'vitest';
import { NOW_S, runScript, type Stored, type Surroundings } from '../../../support/engine/run-script.ts';

const NOW_MS = NOW_S * 1e3;
/** Milliseconds before now, and the place among the entries of that millisecond. */
const idOf = (agoMs: number, n: number) => `${NOW_MS - agoMs}-${n}`;
const entries = (...ids: string[]): [string, string[]][] =>
  ids.map((id, i) => [id, ['kind', 'paid', 'seq', String(i + 1)]]);

function append(
  stored: Stored,
  most: number,
  parts: readonly (string | number)[],
  around: Surroundings = {},
) {
  return runScript('log/append-events', stored, ['events'], [most, ...parts], around);
}

const ONE = [7, 'paid', '2026-01-01', '0 11 sale anna 2'] as const;
const event = (...more: string[]) => [
  ...['id', '7-0', 'kind', 'paid', 'orderId', '11', 'saleId', 'sale', 'buyerId', 'anna', 'quantity', '2'],
  ...['at', '2026-01-01', ...more],
];

describe('the event stream', () => {
  it('gets an entry for each line of each part, with their numbers, references and metadata', () => {
    const parts = [
      ...[7, 'paid', '2026-01-01', '0 11 sale anna 2\n1 12 sale ben 1\tref 1\t{"a":1}'],
      ...[8, 'expired', '2026-01-02', '0 13 sale cleo 3\tref 2\t\n1 14 sale dora 1\t\t{"b":2}'],
    ];
    const { reply, written } = append({}, 10, parts);
    expect(reply).toEqual([0, 0, '']);
    const line = (
      id: string,
      kind: string,
      order: string,
      buyer: string,
      quantity: string,
      at: string,
      ...more: string[]
    ) => [
      ...[
        'id',
        id,
        'kind',
        kind,
        'orderId',
        order,
        'saleId',
        'sale',
        'buyerId',
        buyer,
        'quantity',
        quantity,
        'at',
        at,
      ],
      ...more,
    ];
    expect(written).toEqual({
      events: [
        [`${NOW_MS}-0`, line('7-0', 'paid', '11', 'anna', '2', '2026-01-01', 'seq', '1')],
        [
          `${NOW_MS}-1`,
          line(
            '7-1',
            'paid',
            '12',
            'ben',
            '1',
            '2026-01-01',
            'seq',
            '2',
            'reference',
            'ref 1',
            'metadata',
            '{"a":1}',
          ),
        ],
        [
          `${NOW_MS}-2`,
          line('8-0', 'expired', '13', 'cleo', '3', '2026-01-02', 'seq', '3', 'reference', 'ref 2'),
        ],
        [
          `${NOW_MS}-3`,
          line('8-1', 'expired', '14', 'dora', '1', '2026-01-02', 'seq', '4', 'metadata', '{"b":2}'),
        ],
      ],
    });
  });

  it.each<[string, string[], string]>([
    ['with a number', ['seq', '41', 'kind', 'paid'], '42'],
    ['with a number behind other fields', ['kind', 'paid', 'seq', '41'], '42'],
    ['without a number', ['kind', 'seq'], '1'],
    ['with a number that is none', ['seq', 'many'], '1'],
  ])('is numbered on after an entry %s', (_, fields, seq) => {
    const last: [string, string[]] = [idOf(9, 0), fields];
    const { written } = append({ events: [last] }, 10, ONE);
    expect(written).toEqual({ events: [last, [`${NOW_MS}-1`, event('seq', seq)]] });
  });

  it('is written without numbers if its last entry may not be read, and the reply says so', () => {
    const { reply, written } = append({}, 10, ONE, { forbidden: ['XREVRANGE'] });
    expect(reply).toEqual([0, 0, 'NOPERM no right to XREVRANGE']);
    expect(written).toEqual({ events: [[`${NOW_MS}-0`, event()]] });
  });

  it('is not written if the key holds something else', () => {
    const { reply, written } = append({ events: 'a string' }, 10, ONE);
    expect(reply).toMatch(/^error .*WRONGTYPE/);
    expect(written).toEqual({});
  });
});

describe('events that are trimmed', () => {
  const OLD = [idOf(90, 0), idOf(80, 0), idOf(80, 1), idOf(80, 2), idOf(70, 0)];
  const group = (name: string, given: string) => [
    'name',
    name,
    'pending',
    0,
    'last-delivered-id',
    given,
    'lag',
    0,
  ];

  it.each<[string, number, unknown]>([
    ['none beyond what it may hold', 6, [0, 0, '']],
    ['fewer than a node', 5, [0, 0, '']],
    ['a node', 3, [3, 80, '']],
  ])('are %s', (_, most, reply) => {
    const run = append({ events: entries(...OLD) }, most, ONE);
    expect(run.reply).toEqual(reply);
    expect(run.commands).toContain(`XTRIM events MAXLEN ~ ${most} LIMIT 10000`);
  });

  it('are looked at only if there are some, as many as can be trimmed', () => {
    const { commands } = append({ events: entries(...OLD) }, 6, ONE);
    expect(commands[0]).toBe('XREVRANGE events + - COUNT 1');
    expect(commands.filter((command) => /XINFO|XRANGE/.test(command))).toEqual([]);
    const over = append({ events: entries(...OLD) }, 5, ONE);
    expect(over.commands.filter((command) => /XINFO|XRANGE/.test(command))).toEqual([
      'XRANGE events - + COUNT 1',
      'XINFO GROUPS events',
    ]);
  });

  it('are counted for each group that was not given them', () => {
    const groups = [
      group('all', idOf(80, 1)),
      group('none', '0-0'),
      group('one', OLD[0]!),
      group('between', idOf(85, 7)),
      group('later', idOf(70, 0)),
      group('two', idOf(80, 0)),
    ];
    const missed = ['none', 3, 'one', 2, 'between', 2, 'two', 1];
    expect(append({ events: entries(...OLD) }, 3, ONE, { groups }).reply).toEqual([3, 80, '', ...missed]);
  });

  it('are trimmed without a look at the groups, if the user has no right to it', () => {
    expect(append({ events: entries(...OLD) }, 3, ONE, { forbidden: ['XINFO'] }).reply).toEqual([
      ...[3, 80, 'NOPERM no right to XINFO'],
    ]);
  });

  it('are trimmed without a look at their number, if the user has no right to it', () => {
    expect(append({ events: entries(...OLD) }, 3, ONE, { forbidden: ['XLEN'] }).reply).toEqual([
      ...[3, 0, 'NOPERM no right to XLEN'],
    ]);
  });
});
