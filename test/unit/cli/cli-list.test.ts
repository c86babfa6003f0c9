/** `stockade sale list --all`, with a node that has two pages or fails at the second one. */
import { expect, test } from 'vitest';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { callCli } from '../../support/cli/cli.ts';

const sale = {
  ...saleToJson(parseSale({ id: 'none', stock: 100 })),
  ...{ state: 'open', remaining: 0, soldOut: true, generation: 1, movedUnits: 0 },
  ...{ committedOrders: 100, committedUnits: 100 },
};

function nodeWith(second: readonly [status: number, body: object]): Promise<NodeJS.ProcessEnv> {
  const first = { sales: [{ ...sale, id: 'one' }], next: 'place' };
  return answeringNode((_, { searchParams }) => (searchParams.get('after') === 'place' ? second : first));
}

const LAST = [200, { sales: [{ ...sale, id: 'two', stock: 9 }] }] as const;
const FAILED = [500, { code: 'internal', title: 'It failed', status: 500 }] as const;

test.each([
  ['order refunds-due', 'orders', {}, 'No more refunds are due.\n'],
  ['sale ledger jazz', 'ledger', {}, 'There are no more entries.\n'],
  ['events dead', 'dead', { total: 0 }, 'There are no dead letters.\n'],
] as const)(
  '%s reads the page that is asked for, and names the next one',
  async (command, list, more, none) => {
    const answers: string[] = [];
    const env = await answeringNode((_, { search }) => {
      answers.push(search);
      return { ...more, [list]: [], ...(!search.includes('after=17') && { next: '17' }) };
    });
    const call = (...flags: string[]) => callCli([...command.split(' '), ...flags], { env });
    expect((await call('--limit', '5')).stderr).toBe('More follow: add --after 17\n');
    expect(JSON.parse((await call('--json')).stdout)).toEqual({ ...more, [list]: [], next: '17' });
    expect(await call('--limit', '5', '--after', '17')).toMatchObject({ stdout: none, stderr: '' });
    expect(answers).toEqual(['?limit=5', '', '?after=17&limit=5']);
  },
);

test('all pages are one JSON object, or one table', async () => {
  const env = await nodeWith(LAST);
  const json = await callCli(['sale', 'list', '--all', '--json'], { env });
  expect(JSON.parse(json.stdout)).toMatchObject({ sales: [{ id: 'one' }, { id: 'two' }] });
  const { exitCode, stdout } = await callCli(['sale', 'list', '--all'], { env });
  const [titles, ...rows] = stdout.trimEnd().split('\n');
  expect(exitCode).toBe(0);
  expect(titles).toMatch(/^sale +state +stock/);
  expect(rows).toEqual([expect.stringMatching(/^one /), expect.stringMatching(/^two /)]);
  // They stand below the titles.
  for (const row of rows) expect(row.indexOf('open end')).toBe(titles!.indexOf('ends'));
});

test('if a page can’t be read, the JSON tells only that', async () => {
  const env = await nodeWith(FAILED);
  const { exitCode, stdout, stderr } = await callCli(['sale', 'list', '--all', '--json'], { env });
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('error: It failed')]);
  expect(JSON.parse(stdout)).toEqual({ error: { code: 'internal', message: 'It failed' } });
});

test.each(['sale list', 'order list jazz', 'order export jazz'])(
  '%s refuses times that are mixed up, and names them as flags',
  async (command) => {
    const given = [
      ...command.split(' '),
      '--since',
      '2026-12-01T00:00:00Z',
      '--until',
      '2026-11-01T00:00:00Z',
    ];
    expect(await callCli(given)).toMatchObject({
      exitCode: 2,
      stderr:
        'error: --until must be after --since, which is 2026-12-01T00:00:00.000Z; it is 2026-11-01T00:00:00.000Z\n',
    });
  },
);

test.each([
  ['there are none at all', [], 0, 'There are no sales. Create one: '],
  ['all are archived', [], 1, 'All sales are archived: --archived include lists them.'],
  ['the filter matches none', ['--state', 'open'], 1, 'No sale matches.'],
])('an empty list says why: %s', async (_, flags, archived, why) => {
  const env = await answeringNode((__, { searchParams }) => ({
    sales: searchParams.get('archived') === 'only' ? Array(archived).fill(sale) : [],
  }));
  const { exitCode, stdout } = await callCli(['sale', 'list', ...flags], { env });
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining(why)]);
});

test.each([
  ['the sale has none', [], undefined, 'The sale has no orders yet.'],
  ['the filter matches none', ['--buyer', 'ann'], undefined, 'No order matches.'],
  ['the filter matches none of many', ['--buyer', 'ann'], '17', 'No order matches on this page.'],
  [
    'the filter matches no later one',
    ['--buyer', 'ann', '--after', '17'],
    undefined,
    'No order matches on this page.',
  ],
])('a list without orders says why: %s', async (_, flags, next, why) => {
  const env = await answeringNode(() => ({ orders: [], next }));
  expect(await callCli(['order', 'list', 'jazz', ...flags], { env })).toMatchObject({
    ...{ exitCode: 0, stdout: `${why}\n` },
  });
});

test.each(['order list jazz', 'order refunds-due'])(
  '%s names the flag of a place that only Postgres refuses',
  async (command) => {
    const fault = { field: 'after', problem: 'is not an order of sale jazz' };
    const env = await answeringNode(() => [
      400,
      { code: 'invalid_request', title: 'Not valid', faults: [fault] },
    ]);
    expect(await callCli([...command.split(' '), '--after', '17'], { env })).toMatchObject({
      ...{ exitCode: 2, stderr: 'error: --after is not an order of sale jazz\n' },
    });
  },
);
