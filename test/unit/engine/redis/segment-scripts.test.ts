/** What the scripts reply and write that move units between segments, change their state, or read them. */
import { describe, expect, it } from 'vitest';
import { type Hash, NOW_S, NOW_US, runScript, type Stored } from '../../../support/engine/run-script.ts';

const SEGMENT: Hash = {
  ...{ generation: '4', state: 'open', left: '7', supplied: '10', taken: '3', returned: '1', credited: '2' },
  ...{ withdrawn: '0', limit: '3', seq: '8', tail: '1008', committed: '6', orders: '25', rules: 'r1' },
};
const CLOCK_US = NOW_S * 1e6 + NOW_US;
const STALE = ['stale', {}] as const;

type Fields = Readonly<Record<string, string | null>>;

/** A segment with these fields changed; `null`: missing. */
function segment(fields: Fields = {}): Hash {
  return Object.fromEntries(
    Object.entries({ ...SEGMENT, ...fields }).flatMap(([name, value]) =>
      value === null ? [] : [[name, value]],
    ),
  );
}

type Args = readonly (string | number)[];

function run(script: string, stored: Stored, keys: readonly string[], args: Args) {
  const { reply, written } = runScript(script, stored, keys, args);
  return [reply, written];
}

interface OnOne {
  readonly script: string;
  readonly keys: readonly string[];
  readonly args: Args;
  readonly others?: Stored;
}

/** Scripts on published segments; the arguments are those of a change that is made. */
const ON_PUBLISHED: readonly OnOne[] = [
  { script: 'purchase/recall', keys: ['s', 'b'], args: [4, 'anna'] },
  { script: 'change/remember', keys: ['s', 'b'], args: [4, 'anna', 1, '9:1:2:'] },
  { script: 'change/give-back', keys: ['s'], args: [4, 5] },
  {
    script: 'purchase/refill',
    keys: ['s', 't', 'sale'],
    args: [4, 2, 1, 9],
    others: { t: segment(), sale: { epoch: '6' } },
  },
  {
    script: 'purchase/refill',
    keys: ['t', 's', 'sale'],
    args: [4, 1, 1, 9],
    others: { t: segment(), sale: { epoch: '6' } },
  },
  {
    script: 'change/compensate',
    keys: ['s', 'b'],
    args: [4, 'anna', '9', 1],
    others: { b: { anna: '9:1:2:' } },
  },
  { script: 'change/correct', keys: ['s'], args: [4, 'left', 0] },
  { script: 'change/credit', keys: ['s'], args: [4, 5, 2] },
  { script: 'change/withdraw', keys: ['s'], args: [4, 5, 2] },
  { script: 'change/transfer', keys: ['s', 't'], args: [4, 2], others: { t: segment() } },
  { script: 'change/transfer', keys: ['t', 's'], args: [4, 2], others: { t: segment() } },
  { script: 'change/transfer-debit', keys: ['s'], args: [4, 1, 2] },
  { script: 'change/transfer-credit', keys: ['s'], args: [4, 1, 9, 2] },
];

describe.each(ON_PUBLISHED)('$script with $keys', ({ script, keys, args, others = {} }) => {
  it.each(['open', 'paused', 'closed'])('works on a segment that is %s', (state) => {
    expect(run(script, { s: segment({ state }), ...others }, keys, args)[0]).not.toBe('stale');
  });

  it.each<[string, Fields | undefined]>([
    ...['loaded', 'frozen', 'lost'].map((state): [string, Fields] => [state, { state }]),
    ['without a state', { state: null }],
    ['of an older generation', { generation: '3' }],
    ['of a later generation', { generation: '5' }],
    ['missing', undefined],
  ])('is refused by a segment that is %s, and writes nothing', (_, fields) => {
    expect(run(script, { ...(fields && { s: segment(fields) }), ...others }, keys, args)).toEqual(STALE);
  });
});

const CORRUPT: readonly (OnOne & { readonly field: string })[] = [
  { script: 'purchase/recall', keys: ['s', 'b'], args: [4], field: 'committed' },
  {
    script: 'purchase/refill',
    keys: ['s', 't', 'sale'],
    args: [4, 2, 1, 9],
    others: { t: segment(), sale: { epoch: '6' } },
    field: 'left',
  },
  {
    script: 'change/compensate',
    keys: ['s', 'b'],
    args: [4, 'anna', '9', 1],
    others: { b: { anna: '9:1:2:' } },
    field: 'left',
  },
  { script: 'change/credit', keys: ['s'], args: [4, 5, 2], field: 'left' },
  { script: 'change/withdraw', keys: ['s'], args: [4, 5, 2], field: 'left' },
  { script: 'change/transfer', keys: ['s', 't'], args: [4, 2], others: { t: segment() }, field: 'left' },
  { script: 'change/transfer', keys: ['t', 's'], args: [4, 2], others: { t: segment() }, field: 'left' },
  { script: 'change/transfer-debit', keys: ['s'], args: [4, 1, 2], field: 'left' },
  { script: 'change/transfer-credit', keys: ['s'], args: [4, 1, 9, 2], field: 'left' },
];

it.each(CORRUPT)('$script with $keys writes nothing if $field of the segment is no number', (spec) => {
  const { script, keys, args, others = {}, field } = spec;
  for (const value of ['many', null]) {
    const [reply, written] = run(script, { s: segment({ [field]: value }), ...others }, keys, args);
    expect(reply).toMatch(/^error CORRUPT .* s$/);
    expect(written).toEqual({});
  }
});

describe('a change of one segment', () => {
  const cases: readonly (readonly [
    script: string,
    readonly (readonly [string, Fields, Args, unknown, object])[],
  ])[] = [
    [
      'change/credit',
      [
        ['gives units', {}, [5, 2], 1, { left: '9', supplied: '12', credited: '4', movement: '5' }],
        [
          'gives them after an older movement',
          { movement: '4' },
          [5, 2],
          1,
          { left: '9', supplied: '12', credited: '4', movement: '5' },
        ],
        [
          'gives units of the first movement',
          {},
          [1, 2],
          1,
          { left: '9', supplied: '12', credited: '4', movement: '1' },
        ],
        ['gives none twice', { movement: '5' }, [5, 2], 0, {}],
        ['gives none for an older movement', { movement: '6' }, [5, 2], 0, {}],
      ],
    ],
    [
      'change/withdraw',
      [
        ['removes units', {}, [5, 2], 2, { left: '5', supplied: '8', withdrawn: '2', withdrawal: '5 2' }],
        [
          'removes all that are left',
          {},
          [5, 9],
          7,
          { left: '0', supplied: '3', withdrawn: '7', withdrawal: '5 7' },
        ],
        [
          'removes the rest',
          { withdrawal: '5 2' },
          [5, 6],
          6,
          { left: '3', supplied: '6', withdrawn: '4', withdrawal: '5 6' },
        ],
        ['removes one unit', {}, [5, 1], 1, { left: '6', supplied: '9', withdrawn: '1', withdrawal: '5 1' }],
        [
          'brings no counters to a segment of version 0.1.0 that has no unit left',
          { left: '0', withdrawn: null, supplied: null },
          [5, 2],
          0,
          { withdrawal: '5 0' },
        ],
        ['removes none twice', { withdrawal: '5 2' }, [5, 2], 2, {}],
        ['removes none for fewer', { withdrawal: '5 2' }, [5, 1], 2, {}],
        ['removes none for an older withdrawal', { withdrawal: '6 1' }, [5, 2], 0, {}],
        ['removes none for one that was given back', { withdrawal: '5 back' }, [5, 2], 0, {}],
        [
          'removes units after one that was given back',
          { withdrawal: '4 back' },
          [5, 2],
          2,
          { left: '5', supplied: '8', withdrawn: '2', withdrawal: '5 2' },
        ],
        ['remembers a withdrawal that finds no unit', { left: '0' }, [5, 2], 0, { withdrawal: '5 0' }],
        [
          'removes units beside those of an older one',
          { withdrawal: '4 3' },
          [5, 2],
          2,
          { left: '5', supplied: '8', withdrawn: '2', withdrawal: '5 2' },
        ],
      ],
    ],
    [
      'change/give-back',
      [
        [
          'returns the units',
          { withdrawal: '5 2', withdrawn: '2' },
          [5],
          2,
          { left: '9', supplied: '12', withdrawn: '0', withdrawal: '5 back' },
        ],
        [
          'returns one unit',
          { withdrawal: '5 1', withdrawn: '1' },
          [5],
          1,
          { left: '8', supplied: '11', withdrawn: '0', withdrawal: '5 back' },
        ],
        [
          'brings no counters to a segment of version 0.1.0',
          { withdrawn: null, supplied: null },
          [5],
          0,
          { withdrawal: '5 back' },
        ],
        ['returns none twice', { withdrawal: '5 back' }, [5], 0, {}],
        ['refuses the withdrawal that comes late', {}, [5], 0, { withdrawal: '5 back' }],
        ['refuses a late one after an older one', { withdrawal: '4 2' }, [5], 0, { withdrawal: '5 back' }],
        ['leaves a newer one alone', { withdrawal: '6 2' }, [5], 0, {}],
      ],
    ],
    [
      'change/correct',
      [
        ['sets units left', { left: '9' }, ['left', -2], 1, { left: '7' }],
        ['sets units left to 0', { left: '1', taken: '10' }, ['left', -1], 1, { left: '0' }],
        ['sets units left that are no number', { left: 'many' }, ['left', 'none'], 1, { left: '7' }],
        ['sets units supplied', { supplied: '13' }, ['supplied', 3], 1, { supplied: '10' }],
        ['does nothing at another difference', { left: '9' }, ['left', -1], 0, {}],
        ['does nothing if units left are a number now', {}, ['left', 'none'], 0, {}],
        ['does nothing if units left are no number now', { left: 'many' }, ['left', 0], 0, {}],
        ['sets nothing below 0', { left: '1', taken: '12' }, ['left', -3], 0, {}],
        ['sets no units supplied without units left', { left: 'many' }, ['supplied', 'none'], 0, {}],
        ['does nothing without units taken', { taken: null }, ['left', 0], 0, {}],
        ['does nothing without units supplied', { supplied: null }, ['left', 0], 0, {}],
      ],
    ],
    [
      'change/transfer-debit',
      [
        [
          'removes units',
          {},
          [1, 2],
          `${CLOCK_US} 1 2`,
          { left: '5', supplied: '8', out: `${CLOCK_US} 1 2`, outSeq: `${CLOCK_US}` },
        ],
        [
          'removes all that are left',
          {},
          [1, 9],
          `${CLOCK_US} 1 7`,
          { left: '0', supplied: '3', out: `${CLOCK_US} 1 7`, outSeq: `${CLOCK_US}` },
        ],
        [
          'uses no number twice',
          { outSeq: `${CLOCK_US + 5}` },
          [1, 2],
          `${CLOCK_US + 6} 1 2`,
          { left: '5', supplied: '8', out: `${CLOCK_US + 6} 1 2`, outSeq: `${CLOCK_US + 6}` },
        ],
        [
          'follows the clock after an old one',
          { outSeq: '17' },
          [1, 2],
          `${CLOCK_US} 1 2`,
          { left: '5', supplied: '8', out: `${CLOCK_US} 1 2`, outSeq: `${CLOCK_US}` },
        ],
        ['removes nothing while another is open', { out: '17 2 1' }, [1, 2], '17 2 1', {}],
        ['removes nothing where none is left', { left: '0' }, [1, 2], 'empty', {}],
      ],
    ],
    [
      'change/transfer-credit',
      [
        ['gives units', {}, [1, 9, 2], 1, { left: '9', supplied: '12', 'from:1': '9' }],
        [
          'gives units after an older transfer',
          { 'from:1': '8', 'from:2': '12' },
          [1, 9, 2],
          1,
          { left: '9', supplied: '12', 'from:1': '9' },
        ],
        ['gives units of the first transfer', {}, [1, 1, 2], 1, { left: '9', supplied: '12', 'from:1': '1' }],
        ['gives none twice', { 'from:1': '9' }, [1, 9, 2], 0, {}],
        ['gives none of an older transfer', { 'from:1': '10' }, [1, 9, 2], 0, {}],
      ],
    ],
    [
      'change/transfer-settle',
      [
        ['removes the record', { out: '9 1 2' }, [9], 1, { out: null }],
        ['leaves another record', { out: '10 1 2' }, [9], 0, {}],
        ['finds no record', {}, [9], 0, {}],
        ['leaves another generation', { generation: '5', out: '9 1 2' }, [9], 0, {}],
      ],
    ],
    [
      'build/freeze',
      [
        ['freezes', {}, [], 1, { state: 'frozen' }],
        ['freezes one that has lost writes', { state: 'lost' }, [], 1, { state: 'frozen' }],
        ['leaves a later generation', { generation: '5' }, [], 'stale', {}],
      ],
    ],
  ];
  const all = cases.flatMap(([script, some]) =>
    some.map(([what, ...rest]) => [`${script} ${what}`, script, ...rest] as const),
  );

  it.each(all)('%s', (_, script, fields, args, reply, written) => {
    expect(run(script, { s: segment(fields) }, ['s'], [4, ...args])).toEqual([
      reply,
      Object.keys(written).length === 0 ? {} : { s: written },
    ]);
  });
});

describe('a new segment', () => {
  const fresh = (state: string, left: string, limit: string) => ({
    ...{ generation: '4', state, left, supplied: left, returned: '0', credited: '0', withdrawn: '0', limit },
    ...{ seq: '0', tail: '', committed: '0', committedOrders: '0', orders: '0', taken: '0' },
  });

  it.each<[string, Stored]>([
    ['there is none', {}],
    ['an older one was never published', { s: { generation: '3', state: 'loaded', foreign: '1' } }],
  ])('is empty and frozen, if %s', (_, stored) => {
    const [reply, written] = run('build/freeze', stored, ['s'], [4]);
    expect(reply).toBe(1);
    expect(written).toEqual({ s: { ...fresh('frozen', '0', '0'), ...('s' in stored && { foreign: null }) } });
  });

  it.each(['open', 'paused', 'closed', 'lost'])(
    'does not replace an older one that is %s, which is frozen',
    (state) => {
      const older = { generation: '3', state, foreign: '1' };
      expect(run('build/freeze', { s: older }, ['s'], [4])).toEqual(['older', { s: { state: 'frozen' } }]);
    },
  );

  const KEYS = ['s', 'b', 'l', 'd'];
  const OLD: Stored = {
    s: { generation: '3', state: 'frozen', foreign: '1' },
    b: { anna: '1:1:1:' },
    l: [['3-1', ['p', '']]],
    d: { ' ': 'other', ben: '2:1:1:' },
  };

  it.each<[string, Stored, Args, unknown, object]>([
    ['without anything before', {}, [4, 7, 2, '', ''], 1, { s: fresh('loaded', '7', '2') }],
    ['without buyers', {}, [4, 7, 2, '', '~'], 1, { s: { ...fresh('loaded', '7', '2'), loadedUpTo: '~' } }],
    [
      'without a draft, which is removed',
      OLD,
      [4, 7, 2, '', ''],
      1,
      { s: { ...fresh('loaded', '7', '2'), foreign: null }, b: null, l: null, d: null },
    ],
    [
      'with a draft',
      { ...OLD, d: { ' ': 'mine', ben: '2:1:1:' } },
      [4, 7, 2, 'mine', '~'],
      1,
      {
        s: { ...fresh('loaded', '7', '2'), foreign: null, loadedUpTo: '~' },
        b: { anna: null, ben: '2:1:1:' },
        l: null,
        d: null,
      },
    ],
    ['with a draft that another has begun', OLD, [4, 7, 2, 'mine', '~'], 'stale', {}],
    ['with a draft that is gone', { s: OLD.s! }, [4, 7, 2, 'mine', '~'], 'stale', {}],
    [
      'over one that sells',
      { ...OLD, s: { generation: '3', state: 'open' } },
      [4, 7, 2, '', ''],
      'stale',
      {},
    ],
    [
      'over one that has lost writes',
      { ...OLD, s: { generation: '3', state: 'lost' } },
      [4, 7, 2, '', ''],
      'stale',
      {},
    ],
    ['of the same generation', { ...OLD, s: { generation: '4' } }, [4, 7, 2, '', '~'], 'stale', {}],
    ['of an older generation', { ...OLD, s: { generation: '5' } }, [4, 7, 2, '', '~'], 'stale', {}],
  ])('is loaded %s', (_, stored, args, reply, written) => {
    expect(run('build/load-segment', stored, KEYS, args)).toEqual([reply, written]);
  });

  it('keeps its buyers for ever, although their draft expired', () => {
    const stored = { d: { ' ': 'mine', ben: '2:1:1:' } };
    const { commands } = runScript('build/load-segment', stored, KEYS, [4, 7, 2, 'mine', '~']);
    expect(commands.indexOf('PERSIST d')).toBeGreaterThan(-1);
    expect(commands.indexOf('PERSIST d')).toBeLessThan(commands.indexOf('RENAME d b'));
  });

  it.each<[string, Fields, Args, unknown, object]>([
    [
      'writes records and how far',
      { state: 'loaded' },
      [4, '', 'anna', 'anna', 'x'],
      1,
      { b: { anna: 'x' }, s: { loadedUpTo: 'anna' } },
    ],
    ['writes only how far', { state: 'loaded' }, [4, '', '~'], 1, { s: { loadedUpTo: '~' } }],
    [
      'goes on',
      { state: 'loaded', loadedUpTo: 'Zoe' },
      [4, 'Zoe', 'anna', 'anna', 'x'],
      1,
      { b: { anna: 'x' }, s: { loadedUpTo: 'anna' } },
    ],
    [
      'writes again what another has written',
      { state: 'loaded', loadedUpTo: 'anna' },
      [4, 'ann', 'anna', 'anna', 'x'],
      1,
      { b: { anna: 'x' } },
    ],
    ['is refused without the first buyers', { state: 'loaded' }, [4, 'Al', '~', 'anna', 'x'], 'stale', {}],
    [
      'is refused without buyers before these',
      { state: 'loaded', loadedUpTo: 'Zoe' },
      [4, 'ann', 'anna', 'anna', 'x'],
      'stale',
      {},
    ],
    [
      'is refused without the last buyer before these',
      { state: 'loaded', loadedUpTo: 'ann' },
      [4, 'anna', '~', 'ben', 'x'],
      'stale',
      {},
    ],
    ['is refused when it is published', {}, [4, '', '~', 'anna', 'x'], 'stale', {}],
    ['is refused when it is frozen', { state: 'frozen' }, [4, '', '~', 'anna', 'x'], 'stale', {}],
    [
      'is refused by another generation',
      { state: 'loaded', generation: '5' },
      [4, '', '~', 'anna', 'x'],
      'stale',
      {},
    ],
  ])('load-holdings %s', (_, fields, args, reply, written) => {
    expect(run('build/load-holdings', { s: segment(fields) }, ['s', 'b'], args)).toEqual([reply, written]);
  });

  it('is removed with its keys, unless it is of that generation or a later one', () => {
    expect(run('build/remove-segments', OLD, KEYS, [4])).toEqual([4, { s: null, b: null, l: null, d: null }]);
    expect(run('build/remove-segments', { d: { ' ': 'x' } }, KEYS, [4])).toEqual([1, { d: null }]);
    expect(run('build/remove-segments', {}, KEYS, [4])).toEqual([0, {}]);
    for (const generation of ['4', '5'])
      expect(run('build/remove-segments', { ...OLD, s: { generation } }, KEYS, [4])).toEqual([1, {}]);
  });

  it('is removed with others; those of a later generation stay', () => {
    const stored = {
      ...OLD,
      later: { generation: '4' },
      laterBuyers: { ben: '2:1:1:' },
      third: { generation: '3' },
    };
    const keys = [
      ...KEYS,
      'later',
      'laterBuyers',
      'laterLog',
      'laterDraft',
      'third',
      'none',
      'neither',
      'nor',
    ];
    const removed = { s: null, b: null, l: null, d: null, third: null };
    expect(run('build/remove-segments', stored, keys, [4])).toEqual([6, removed]);
  });
});

describe('a draft', () => {
  const SECOND = { ' ': 'a 2' };

  it('replaces an older one, and expires', () => {
    const { reply, written, commands } = runScript(
      'build/begin-draft',
      { d: { ' ': 'old', ben: 'x' } },
      ['d'],
      ['mine', 500],
    );
    expect([reply, written]).toEqual([1, { d: { ' ': 'mine', ben: null } }]);
    expect(commands.at(-1)).toBe('PEXPIRE d 500');
  });

  it.each<[string, Args, unknown, object]>([
    ['gets records', ['a 1', 'a 2', 'anna', 'x', 'cleo', 'y'], 1, { d: { ...SECOND, anna: 'x', cleo: 'y' } }],
    [
      'loses buyers without orders',
      ['a 1', 'a 2', 'ben', '', 'anna', 'x'],
      1,
      { d: { ...SECOND, anna: 'x', ben: null } },
    ],
    ['loses only buyers', ['a 1', 'a 2', 'ben', ''], 1, { d: { ...SECOND, ben: null } }],
    ['gets no records', ['a 1', 'a 2'], 1, { d: SECOND }],
    ['is written again', ['a 0', 'a 1', 'anna', 'x'], 1, { d: { anna: 'x' } }],
    ['is not written without the write before', ['a 2', 'a 3', 'anna', 'x'], 'stale', {}],
    ['is not written by another', ['b 1', 'b 2', 'ben', '', 'anna', 'x'], 'stale', {}],
  ])('%s', (_, args, reply, written) => {
    expect(run('build/draft-holdings', { d: { ' ': 'a 1', ben: 'z' } }, ['d'], args)).toEqual([
      reply,
      written,
    ]);
  });
});

describe('the record of a sale', () => {
  const RECORD: Hash = { generation: '4', state: 'open', definition: '{}', rules: 'r1', epoch: '6' };
  const TOMBSTONE: Hash = { generation: '4' };
  const change = [4, 'paused', '{"a":1}', 'r2', '', 5];
  const publish = [4, 'paused', '{"a":1}', 'r2', 'publish', 5];
  const published = { state: 'paused', definition: '{"a":1}', rules: 'r2', revision: '5' };

  it.each<[string, Stored, Args, unknown, object]>([
    ['is published', {}, change, 1, { sale: { generation: '4', ...published, epoch: '1' } }],
    ['is changed', { sale: RECORD }, change, 7, { sale: { ...published, epoch: '7' } }],
    [
      'is changed by the same revision',
      { sale: { ...RECORD, revision: '5' } },
      change,
      7,
      { sale: { ...published, revision: undefined, epoch: '7' } },
    ],
    [
      'has that of a later revision',
      { sale: { ...RECORD, revision: '10' } },
      change,
      7,
      { sale: { epoch: '7' } },
    ],
    ['was changed since its segments were published', { sale: RECORD }, publish, 7, { sale: { epoch: '7' } }],
    [
      'is published in the next generation',
      { sale: { ...RECORD, generation: '3' } },
      publish,
      7,
      { sale: { generation: '4', ...published, epoch: '7' } },
    ],
    [
      'is published in a later generation',
      { sale: { ...RECORD, generation: '3' } },
      change,
      7,
      { sale: { generation: '4', ...published, epoch: '7' } },
    ],
    ['stays in a later generation', { sale: { ...RECORD, generation: '5' } }, change, 'stale', {}],
    ['stays a tombstone of this generation', { sale: TOMBSTONE }, change, 'stale', {}],
    ['stays a tombstone of a later one', { sale: { generation: '5' } }, change, 'stale', {}],
    [
      'replaces an older tombstone',
      { sale: { generation: '3', left: 'x' } },
      change,
      1,
      { sale: { generation: '4', ...published, epoch: '1', left: null } },
    ],
  ])('%s', (_, stored, args, reply, written) => {
    expect(run('build/publish-sale', stored, ['sale'], args)).toEqual([reply, written]);
  });

  it.each<[string, Stored, unknown, object]>([
    [
      'becomes a tombstone',
      { sale: { ...RECORD, generation: '3' } },
      1,
      { sale: { generation: '4', state: null, definition: null, rules: null, epoch: null } },
    ],
    ['that is missing becomes one', {}, 1, { sale: { generation: '4' } }],
    ['of that generation stays', { sale: RECORD }, 'later', {}],
    ['of a later one stays', { sale: { ...RECORD, generation: '5' } }, 'later', {}],
  ])('%s', (_, stored, reply, written) => {
    const run = runScript('build/archive-sale', stored, ['sale'], [4, 500]);
    expect([run.reply, run.written]).toEqual([reply, written]);
    expect(run.commands.includes('PEXPIRE sale 500')).toBe(reply === 1);
  });
});

describe('a buyer’s record', () => {
  it.each<[string, Hash, Args, unknown, object]>([
    ['gets orders', {}, ['9:1:2:', '10:1:2:k'], 2, { b: { anna: '9:1:2: 10:1:2:k' } }],
    [
      'gets those that it lacks',
      { anna: '9:1:2:' },
      ['9:1:2:', '10:1:2:'],
      1,
      { b: { anna: '9:1:2: 10:1:2:' } },
    ],
    ['stays missing', {}, [], 0, {}],
    ['has all', { anna: '9:1:2: 10:1:2:' }, ['10:1:2:', '9:1:0:'], 0, {}],
    ['keeps words that are none of ours', { anna: 'x' }, ['9:1:2:'], 1, { b: { anna: 'x 9:1:2:' } }],
  ])('%s again', (_, b, words, reply, written) => {
    expect(run('change/remember', { s: segment(), b }, ['s', 'b'], [4, 'anna', 1, ...words])).toEqual([
      reply,
      written,
    ]);
  });

  it('gets no order after units have come back', () => {
    expect(run('change/remember', { s: segment(), b: {} }, ['s', 'b'], [4, 'anna', 0, '9:1:2:'])).toEqual([
      'returned',
      {},
    ]);
  });

  it.each<[string, Hash, Args, unknown, object]>([
    [
      'loses its only order',
      { anna: '9:2:2:k', ben: 'x' },
      ['anna', '9', 2],
      1,
      { b: { anna: null }, s: { left: '9', supplied: '12', returned: '3' } },
    ],
    [
      'keeps its other orders',
      { anna: '8:1:1: 9:1:2: 10:1:3:' },
      ['anna', '9', 1],
      1,
      { b: { anna: '8:1:1: 10:1:3:' }, s: { left: '8', supplied: '11', returned: '2' } },
    ],
    [
      'loses an order that gives nothing back',
      { anna: '9:1:2:', ben: 'x' },
      ['anna', '9', 0],
      1,
      { b: { anna: null } },
    ],
    ['without the order stays', { anna: '19:1:2: 9:1' }, ['anna', '1', 1], 0, {}],
    ['that is missing stays so', { ben: 'x' }, ['anna', '9', 1], 0, {}],
  ])('%s', (_, b, args, reply, written) => {
    expect(run('change/compensate', { s: segment(), b }, ['s', 'b'], [4, ...args])).toEqual([reply, written]);
  });

  it('is read with the cursor', () => {
    const b = { anna: 'x', ben: 'y' };
    expect(run('purchase/recall', { s: segment(), b }, ['s', 'b'], [4, 'anna', 'cleo', 'ben'])).toEqual([
      [6, 'x', null, 'y'],
      {},
    ]);
    expect(run('purchase/recall', { s: segment(), b }, ['s', 'b'], [4, 'ben'])).toEqual([[6, 'y'], {}]);
    expect(run('purchase/recall', { s: segment(), b }, ['s', 'b'], [4])).toEqual([[6], {}]);
  });
});

describe('units between segments', () => {
  it.each<[string, string, string, number, unknown, object]>([
    ['move', '7', '1', 2, 2, { s: { left: '5', supplied: '8' }, t: { left: '3', supplied: '12' } }],
    [
      'move as far as there are',
      '7',
      '1',
      9,
      7,
      { s: { left: '0', supplied: '3' }, t: { left: '8', supplied: '17' } },
    ],
    [
      'move one by one',
      '7',
      '1',
      1,
      1,
      { s: { left: '6', supplied: '9' }, t: { left: '2', supplied: '11' } },
    ],
    ['stay where none is left', '0', '1', 2, 0, {}],
  ])('%s', (_, has, had, units, reply, written) => {
    const stored = { s: segment({ left: has }), t: segment({ left: had }) };
    expect(run('change/transfer', stored, ['s', 't'], [4, units])).toEqual([reply, written]);
  });

  /** Units left, the receiver from 1, least and wanted; reply, and units left afterwards. */
  it.each<[number[], number, number, number, unknown, number[]]>([
    [[0, 8], 1, 1, 2, [8, 4, 6], [4, 4]],
    [[0, 8], 1, 1, 6, [8, 6, 6], [6, 2]],
    [[0, 7], 1, 1, 1, [7, 4, 6], [4, 3]],
    [[0, 3], 1, 1, 9, [3, 3, 6], [3, 0]],
    [[0, 1], 1, 1, 1, [1, 1, 6], [1, 0]],
    [[0, 4, 9], 1, 1, 1, [13, 5, 6], [5, 4, 4]],
    [[9, 4, 0], 3, 1, 8, [13, 8, 6], [1, 4, 8]],
    [[5, 4, 0], 3, 1, 8, [9, 8, 6], [0, 1, 8]],
    [[5, 5, 0], 3, 1, 2, [10, 3, 6], [2, 5, 3]],
    [[2, 1], 1, 3, 3, [3, 1, 6], [3, 0]],
    [[2, 1], 1, 4, 4, [3, 0, 6], [2, 1]],
    [[2, 9], 1, 1, 2, [11, 0, 6], [2, 9]],
    [[0, 0], 1, 1, 1, [0, 0, 6], [0, 0]],
  ])('of %j refill %i, at least %i, wanted %i', (left, receiver, least, wanted, reply, after) => {
    const keys = left.map((_, i) => `s${i}`);
    const stored = Object.fromEntries(
      left.map((units, i) => [`s${i}`, segment({ left: String(units), supplied: '20' })]),
    );
    const moved = Object.fromEntries(
      left.flatMap((units, i) =>
        units === after[i]
          ? []
          : [[`s${i}`, { left: String(after[i]), supplied: String(20 + after[i]! - units) }]],
      ),
    );
    const all = { ...stored, sale: { epoch: '6' } };
    expect(run('purchase/refill', all, [...keys, 'sale'], [4, receiver, least, wanted])).toEqual([
      reply,
      moved,
    ]);
    for (const sale of [undefined, { generation: '4' }])
      expect(
        run(
          'purchase/refill',
          { ...stored, ...(sale && { sale }) },
          [...keys, 'sale'],
          [4, receiver, least, wanted],
        ),
      ).toEqual(STALE);
  });
});

it('a transfer from a segment without units only reads', () => {
  const { reply, commands } = runScript(
    'change/transfer',
    { s: segment({ left: '0' }), t: segment() },
    ['s', 't'],
    [4, 2],
  );
  expect(reply).toBe(0);
  expect(commands.map((command) => command.split(' ')[0])).toEqual(['HMGET', 'HMGET']);
});

describe('a refill and the take that needs it', () => {
  const ATTEMPT = '4 2 501 100 0 8 1008 25 0 r1';
  const keys = ['s', 't', 'sale', 's', 'b', 'l'];
  const stored = (fields: Fields, sale: Hash = { epoch: '6' }): Stored => ({
    s: segment({ left: '0', committedOrders: '20', ...fields }),
    t: segment(),
    sale,
  });
  const args = [3, 4, 4, 1, 1, 1, ATTEMPT, '11 anna 1 ', ''];

  it('happen together', () => {
    expect(run('purchase/refill-and-take', stored({}), keys, args)).toEqual([
      [
        [7, 4, 6],
        [9, 6, 3, 26, 1],
      ],
      {
        s: { left: '3', supplied: '14', seq: '9', tail: '11', orders: '26', taken: '4', 'lane:2': '501' },
        t: { left: '3', supplied: '6' },
        b: { anna: '11:1:9:' },
        l: [['4-9', ['p', '1008', 'n', '26', 'o', '11 anna 1 ']]],
      },
    ]);
  });

  it.each<[string, Stored, unknown]>([
    ['is stale', stored({}, { generation: '4' }), 'stale'],
    [
      'finds an invalid counter',
      { ...stored({}), t: segment({ left: 'many' }) },
      'error CORRUPT units left in t',
    ],
  ])('do nothing if the refill %s', (_, all, reply) => {
    expect(run('purchase/refill-and-take', all, keys, args)).toEqual([reply, {}]);
  });

  it('report the take that was refused, and the one that failed', () => {
    expect(run('purchase/refill-and-take', stored({ state: 'paused' }), keys, args)[0]).toEqual([
      [7, 4, 6],
      'paused',
    ]);
    expect(run('purchase/refill-and-take', stored({ limit: 'many' }), keys, args)[0]).toMatch(
      /^error CORRUPT/,
    );
  });
});

it('takes from several segments are made each by itself', () => {
  const attempt = '4 2 501 100 0 8 1008 25 0 r1';
  const stored = {
    s: segment({ committedOrders: '20' }),
    t: segment({ committedOrders: '20', limit: 'many' }),
    u: 'a string',
    v: segment({ committedOrders: '20', state: 'paused' }),
  };
  const keys = ['s', 't', 'u', 'v'].flatMap((each) => [each, `${each}-buyers`, `${each}-log`]);
  const args = ['s', 't', 'u', 'v'].flatMap((each) => [attempt, `11 ${each} 1 `, '']);
  const [reply, written] = run('purchase/takes', stored, keys, args) as [unknown[], object];
  expect(reply).toEqual([
    [9, 6, 6, 26, 1],
    expect.stringMatching(/^error CORRUPT/),
    expect.stringMatching(/^error WRONGTYPE/),
    'paused',
  ]);
  expect(written).toEqual({
    s: { left: '6', seq: '9', tail: '11', orders: '26', taken: '4', 'lane:2': '501' },
    's-buyers': { s: '11:1:9:' },
    's-log': [['4-9', ['p', '1008', 'n', '26', 'o', '11 s 1 ']]],
    v: { 'lane:2': '501' },
  });
});

describe('the state of all segments', () => {
  const COUNTERS = { supplied: '10', returned: '1', credited: '2', withdrawn: '0' };
  const set = { state: 'paused', rules: 'r2', limit: '9', revision: '5' };

  it.each<[string, Fields, string, string, unknown, object]>([
    ['is set', {}, 'paused', '', 5, set],
    ['is published', { state: 'loaded', loadedUpTo: '~' }, 'paused', 'publish', 5, set],
    [
      'is not published without buyers',
      { state: 'loaded', loadedUpTo: 'zoe' },
      'paused',
      'publish',
      'stale',
      {},
    ],
    ['is not published before buyers are loaded', { state: 'loaded' }, 'paused', 'publish', 'stale', {}],
    ['is not published twice', {}, 'paused', 'publish', 'stale', {}],
    ['is not set before it is published', { state: 'loaded' }, 'paused', '', 'stale', {}],
    ['is not set where one is frozen', { state: 'frozen' }, 'paused', '', 'stale', {}],
    ['is not set where one has lost writes', { state: 'lost' }, 'paused', '', 'stale', {}],
    ['is not set in another generation', { generation: '5' }, 'paused', '', 'stale', {}],
    [
      'brings counters where they are missing',
      { ...COUNTERS, supplied: null, returned: null, credited: null, withdrawn: null },
      'paused',
      '',
      5,
      { ...set, supplied: '10', returned: '0', credited: '0', withdrawn: '0' },
    ],
    [
      'keeps counters of what came in',
      { supplied: null, withdrawn: null },
      'paused',
      '',
      5,
      { ...set, supplied: '10', withdrawn: '0' },
    ],
    ['is not set where one has that of a later revision', { revision: '10' }, 'paused', '', 10, {}],
    [
      'is published whatever revision the segment had',
      { state: 'loaded', loadedUpTo: '~', revision: '10' },
      'paused',
      'publish',
      5,
      set,
    ],
    ['keeps all counters', { supplied: '99' }, 'paused', '', 5, set],
    ['brings none without units left', { left: null, withdrawn: null }, 'paused', '', 5, set],
    ['brings none without units taken', { taken: null, withdrawn: null }, 'paused', '', 5, set],
  ])('%s', (_, fields, state, publish, reply, written) => {
    const good = segment(publish === '' ? {} : { state: 'loaded', loadedUpTo: '~' });
    const args = [4, state, publish, 'r2', 9, '~', 5];
    const isRefused = reply !== 5;
    for (const keys of [
      ['s', 't'],
      ['t', 's'],
    ])
      expect(run('change/set-state', { s: segment(fields), t: good }, keys, args)).toEqual([
        reply,
        isRefused ? {} : { s: written, t: set },
      ]);
  });
});

describe('a look at segments', () => {
  it('audits them, whatever the keys hold', () => {
    const stored = {
      s: segment({ out: '9 1 2', outSeq: '9' }),
      t: segment({ supplied: null }),
      u: segment({ generation: '5' }),
      v: 'a string',
    };
    expect(run('look/audit', stored, ['s', 't', 'u', 'v', 'w'], [4])).toEqual([
      [
        ['open', '7', '3', '10', '1', '2', '0', '8', '9', '9 1 2'],
        ['open', '7', '3', null, '1', '2', '0', '8', null, null],
        null,
        expect.stringMatching(/^WRONGTYPE/),
        null,
      ],
      {},
    ]);
  });

  it('takes a snapshot of them', () => {
    const stored = {
      s: segment({ out: '9 1 2', withdrawal: '5 2', supplied: '99' }),
      t: segment({ supplied: null, withdrawn: null }),
      u: segment({ generation: '5' }),
      v: segment({ supplied: '99', withdrawn: null, left: null }),
      w: segment({ supplied: '99', withdrawn: null, taken: null }),
    };
    expect(run('look/snapshot', stored, ['s', 't', 'u', 'v', 'w', 'x'], [4])).toEqual([
      [
        ['7', '8', '6', '3', '25', '99', '5 2', '9 1 2'],
        ['7', '8', '6', '3', '25', '10', '', ''],
        null,
        [null, '8', '6', '3', '25', '99', '', ''],
        ['7', '8', '6', null, '25', '99', '', ''],
        null,
      ],
      {},
    ]);
  });

  it('compares whole sales', () => {
    const record = { generation: '4', state: 'open', rules: 'r1' };
    const keys = ['s', 't', 'one', 's', 'two', 's', 'u', 'three', 'v', 'four', 's', 'five'];
    const stored = {
      ...{ s: segment(), t: segment({ tail: '7' }), u: segment({ tail: null }), v: 'a string' },
      ...{ one: record, two: { ...record, state: 'paused' }, three: record, four: record },
    };
    expect(run('look/digest', stored, keys, [2, 1, 2, 1, 1])).toEqual([
      [
        '4 open r1\n4 open r1 8 1008 6\n4 open r1 8 7 6',
        '4 paused r1\n4 open r1 8 1008 6',
        'error',
        'error',
        'error',
      ],
      {},
    ]);
  });
});

describe('a log', () => {
  const entryOf = (id: string, orders: string): [string, string[]] => [id, ['p', 'x', 'n', '1', 'o', orders]];
  const LOG = [entryOf('4-6', '60 a 1 '), entryOf('4-7', '70 b 1 \n71 c 1 '), entryOf('4-8', '80 d 1 ')];
  const left = (...entries: unknown[]) => entries;
  const moved = { committed: '7', committedOrders: '24' };

  it.each<[string, Stored, Args, unknown, object]>([
    ['moves to the entry', { l: LOG }, [4, 7, 24, '70'], 1, { s: moved, l: left(LOG[2]) }],
    ['moves without a name of the entry', { l: LOG }, [4, 7, 24, ''], 1, { s: moved, l: left(LOG[2]) }],
    ['stays where it is', { l: LOG }, [4, 6, 24, '60'], 0, {}],
    ['does not go back', { l: LOG }, [4, 5, 24, '50'], 0, {}],
    ['stays where the log has another entry', { l: LOG }, [4, 7, 24, '71'], 'lost', {}],
    ['stays where the log lacks the entry', { l: [LOG[0]!, LOG[2]!] }, [4, 7, 24, '70'], 'lost', {}],
    [
      'stays where the entry has no orders',
      { l: [['4-7', ['p', 'x']] as [string, string[]]] },
      [4, 7, 24, '70'],
      'lost',
      {},
    ],
    ['stays without a log', {}, [4, 7, 24, '70'], 'lost', {}],
    ['stays in another generation', { l: LOG }, [5, 7, 24, '70'], 'stale', {}],
  ])('whose cursor %s', (_, stored, args, reply, written) => {
    expect(run('log/advance', { s: segment(), ...stored }, ['s', 'l'], args)).toEqual([[reply], written]);
  });

  it('that is invalid keeps no other from being advanced', () => {
    const stored = { s: segment(), l: 'a string', t: segment(), m: LOG, u: segment({ committed: null }) };
    const args = [4, 7, 24, '', 4, 7, 24, '70', 4, 7, 24, '70'];
    expect(run('log/advance', stored, ['s', 'l', 't', 'm', 'u', 'n'], args)).toEqual([
      [expect.stringMatching(/^error .*WRONGTYPE/), 1, expect.stringMatching(/^error .*nil/)],
      { t: moved, m: left(LOG[2]) },
    ]);
  });

  it('is read behind a position, beside one that is invalid', () => {
    const stored = {
      s: segment({ lost: '9 1 2' }),
      l: [entryOf('3-9', ''), ...LOG, entryOf('5-1', '')],
      t: 'a string',
    };
    const head = ['4', '8', '1008', '25', '6', 'open', 'r1', '9 1 2'];
    const keys = ['s', 'l', 't', 'm', 'u', 'n'];
    const read = (most: number) => run('log/read-logs', stored, keys, [most, 4, 6, 4, 0, 4, 0]);
    const others = [expect.stringMatching(/^error .*WRONGTYPE/), [Array(8).fill(null), []]];
    expect(read(9)).toEqual([[[head, [LOG[1], LOG[2]]], ...others], {}]);
    expect(read(1)).toEqual([[[head, [LOG[1]]], ...others], {}]);
    expect(read(0)).toEqual([[[head, []], ...others], {}]);
  });
});
