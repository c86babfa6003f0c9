/** The messages about wrong arguments. Runs in this process: a command with wrong arguments does nothing else. */
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { authorOf } from '../../../../src/cli/command/author.ts';
import { orderSheet } from '../../../../src/cli/order/show-order.ts';
import { runProgram } from '../../../../src/cli/program.ts';
import { explain } from '../../../../src/cli/terminal/explain.ts';

const user = vi.hoisted(() => ({ name: 'ann' as string | undefined }));

vi.mock('node:os', async (original) => ({
  ...(await original<typeof import('node:os')>()),
  userInfo: () => {
    if (user.name === undefined) throw new Error('uv_os_get_passwd returned ENOENT');
    return { username: user.name };
  },
}));

let said: string;

function listen(): void {
  said = '';
  const note = (text: unknown) => {
    said += text;
    return true;
  };
  vi.spyOn(process.stderr, 'write').mockImplementation(note);
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => note(`STDOUT ${text}`));
}

// To load all commands takes longer than a test may.
beforeAll(async () => {
  listen();
  await told('nonsense');
}, 60_000);

beforeEach(() => {
  user.name = 'ann';
  listen();
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

async function told(args: string) {
  const words = [...args.matchAll(/"([^"]*)"|\S+/g)].map(
    ([word, quoted]) => quoted ?? word.replace('LONG', 'x'.repeat(501)),
  );
  const error: unknown = await runProgram(['node', 'stockade', ...words]).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const { exitCode, lines, json } = explain(error);
  return { exitCode, text: [said, ...lines].join('\n'), json };
}

test.each([
  ['sale top-up', "missing required argument 'sale'"],
  ['sale show ""', '<sale> is empty: if it is a variable of the shell, that is not set'],
  ['order show ""', '<id> is empty'],
  ['order list ""', '<sale> is empty'],
  ['order refunds-due ""', '<sale> is empty'],
  ['verify ""', '<sale> is empty'],
  ['recover "" --yes', '<sale> is empty'],
  ['events resend ""', '<id> is empty'],
  ['sale top-up x', '--units is required: a whole number, from 1 to 2147483648'],
  ['sale top-up x --units 1.5', '--units must be a whole number from 1 to 2147483648'],
  ['sale top-up x 500', 'example: stockade sale top-up tickets --units 500'],
  ['sale withdraw x', '--units is required: a whole number, from 1 to 2147483648'],
  ['sale withdraw x --units few', '--units must be a whole number from 1 to 2147483648'],
  ['sale resize x', '--segments is required: a whole number, from 1 to 1024'],
  ['sale resize x 5', 'example: stockade sale resize tickets --segments 32'],
  ['sale window', 'example: stockade sale window tickets --ends-at 2026-11-28T01:00:00+01:00 --reason'],
  ['sale window x --ends-at soon', '--ends-at must be a time in ISO 8601 with zone'],
  ['sale require-token x', '--on or --off must be given'],
  ['sale queue x', 'say what to change: give --queue'],
  ['sale queue x --queue lottery', '--queue must be one of off, fifo, draw'],
  ['sale queue x --max-waiting 0', '--max-waiting must be at least 1'],
  ['queue places x --state gone', '--state must be one of waiting, offered, bought, lapsed, left'],
  ['queue places x --limit 0', '--limit must be a whole number from 1 to 1000'],
  ['queue pace x', 'say how fast: give --per-minute or --no-bound'],
  ['queue pace x --per-minute 0', '--per-minute must be at least 1'],
  ['queue hand-out x', '--offers is required: a number of offers'],
  ['queue draw x --json', 'leave --json out'],
  ['sale edit x', 'say what to change: give --title'],
  ['sale edit x --metadata 3 --per-buyer-limit no', '--per-buyer-limit must be a whole number from 1'],
  ['sale ledger x --limit 0', '--limit must be a whole number from 1 to 1000'],
  ['sale ledger x --after y', '--after must be `next` of the page before'],
  ['order refunds-due --after y', '--after must be `next` of the page before'],
  ['events dead --limit 1001', '--limit must be a whole number from 1 to 1000'],
  ['sale list --limit 0', '--limit must be a whole number from 1 to'],
  ['sale list --since yesterday', '--since must be a time in ISO 8601 with zone'],
  ['sale list --state nope', '--state must be one of open, paused, closed'],
  ['order list x --status foo', '--status must be among'],
  ['order export x --format xml', '--format must be csv or ndjson'],
  ['order edit 662207995405477814', 'say what to note: give --reference or --metadata'],
  ['migrate --may-delete-sales', 'give --grant-to <role> too'],
  ['migrate --redis-url redis://localhost', "unknown option '--redis-url'"],
  ['migrate --key-prefix a:', "unknown option '--key-prefix'"],
  ['migrate --pg-pool-max 9', "unknown option '--pg-pool-max'"],
  ['top --redis-url redis://localhost', "unknown option '--redis-url'"],
  ['sale require-token x --on --off', "option '--off' cannot be used with option '--on'"],
  ['sale require-token x on', 'example: stockade sale require-token tickets --on'],
  ['sale pause x --by ""', '--by must be 1 to 200 printable ASCII characters'],
  ['sale create x --stock 1 --by ümit', '--by must be 1 to 200 printable ASCII characters'],
  ['sale create x --stock 1 --reason LONG', '--reason must have at most 500 characters'],
  ['sale close x --reason LONG', '--reason must have at most 500 characters'],
  ['order refund 17 --by ""', '--by must be 1 to 200 printable ASCII characters'],
  ['order refund 17 --reason LONG', '--reason must have at most 500 characters'],
  ['order refund', 'example: stockade order refund 662207995405477814'],
  ['order show seventeen', '<id> is "seventeen", but must be the number of an order'],
  ['buyer erase', 'example: stockade buyer erase buyer-4711'],
  [
    'buyer erase x --reason "x wants it"',
    "--reason must not contain the buyer's id, because the ledger keeps it",
  ],
  ['buyer erase x --by x', "--by must not contain the buyer's id, because the ledger keeps it"],
  ['buyer erase "a b"', '<id> must be 1 to 128 visible ASCII characters without spaces'],
  ['events resend', 'either the id of a dead letter or --all'],
  ['events dead x', 'example: stockade events dead'],
  ['queue check', 'example: stockade queue check draw.ndjson'],
  [
    'queue check x --commitment 6e34',
    '--commitment is "6e34", but must be 64 lower-case hexadecimal characters',
  ],
  ['rebalance', 'example: stockade rebalance tickets --dry-run'],
  ['recover', 'name the sale to rebuild, such as: '],
  ['verify a b', 'example: stockade verify'],
  [
    'sale nonsense',
    'stockade sale has: create, list, show, pause, resume, close, archive, top-up, withdraw,',
  ],
  [
    'order nonsense',
    'stockade order has: list, show, pay, cancel, redeem, refund, edit, refunds-due, export;',
  ],
  [
    'nonsense',
    'stockade has: serve, demo, top, migrate, sync, verify, rebalance, recover, doctor, rehearse, sale, order, buyer, events, queue, completion;',
  ],
])('%s: exit code 2, and what would be right', async (args, message) => {
  const { exitCode, text, json } = await told(args);
  expect(text).toContain(message);
  expect(text).not.toContain('STDOUT');
  expect(exitCode).toBe(2);
  expect(json?.error.code).toMatch(/^(usage|invalid_request)$/);
});

describe('the help', () => {
  // As in the program, where a command that has not ended has failed.
  beforeEach(() => {
    process.exitCode = 1;
  });
  afterEach(() => {
    process.exitCode = undefined;
  });

  test.each([
    ['help', '--help'],
    ['help help', '--help'],
    ['help sale', 'sale --help'],
    ['sale help', 'sale --help'],
    ['help verify', 'verify --help'],
    ['help sale create', 'sale create --help'],
    ['sale help create', 'sale create --help'],
    ['help sale create tickets', 'sale create --help'],
  ])('%s is that of `%s`', async (args, same) => {
    const expected = await told(same);
    said = '';
    expect(await told(args)).toEqual(expected);
    expect(expected).toMatchObject({ exitCode: 0, text: expect.stringMatching(/^STDOUT Usage: /) });
  });

  test('has defaults as they are typed', async () => {
    const { text } = await told('order list --help');
    expect(text).toContain('(default: newest)');
    expect(text).toContain('(default: 100)');
  });

  test.each([
    ['help sael', 'Did you mean sale?'],
    ['help sale crate', 'Did you mean create?'],
    ['help order create', 'stockade order has: list,'],
  ])('%s: there is none', async (args, message) => {
    const { exitCode, text } = await told(args);
    expect({ exitCode, text }).toEqual({ exitCode: 2, text: expect.stringContaining(message) });
    expect(text).not.toContain('STDOUT');
  });
});

test.each([
  { WEBHOOK_URL: 'http://127.0.0.1/hook' },
  { CHALLENGE: './no-such-file.mjs' },
  { TRUSTED_PROXIES: '1', RATE_LIMIT_CONNECTIONS: '20/10/100' },
  { LANE_CAPACITY: 'many' },
])('doctor refuses settings that a node refuses: %o', async (env) => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const byNode = await told('serve');
  said = '';
  expect(byNode).toMatchObject({ exitCode: 2, text: expect.stringContaining(Object.keys(env)[0]!) });
  expect(await told('doctor')).toEqual(byNode);
});

describe('the author of a change', () => {
  test('is the user of the shell unless a name is given, and has a number where it has no name', () => {
    expect(authorOf({})).toEqual({ actor: 'ann', reason: '' });
    expect(authorOf({ by: 'bert', reason: 'so' })).toEqual({ actor: 'bert', reason: 'so' });
    user.name = undefined;
    expect(authorOf({}).actor).toBe(`uid ${process.getuid!()}`);
  });

  test('is on the order’s sheet, with the reason if there is one', () => {
    const changes = [
      { change: 'pay', at: 'T1', actor: 'ops token', reason: '' },
      { change: 'refund', at: 'T2', actor: 'ann', reason: 'fell ill' },
    ] as const;
    const order = {
      orderId: '17',
      saleId: 's',
      buyerId: 'b',
      quantity: 1,
      status: 'refunded',
      committedAt: 'T0',
    };
    const sheet = orderSheet({ ...order, changes } as never);
    expect(sheet).toMatch(/^operator +pay by ops token at T1$/m);
    expect(sheet).toMatch(/^operator +refund by ann at T2: fell ill$/m);
  });
});
