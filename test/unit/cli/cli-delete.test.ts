/** `stockade sale delete` of a sale that is being deleted already. */
import { expect, test } from 'vitest';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { callCli } from '../../support/cli/cli.ts';
import { setClockAhead } from '../../support/clock-ahead.ts';

/** The ops port of a node that deletes `jazz` until its deletion has been read so often. */
function deletingNode(reads: number): Promise<NodeJS.ProcessEnv> {
  const begun = { saleId: 'jazz', orders: 3, actor: 'ann', reason: '', begunAt: '2026-11-27T20:00:00.000Z' };
  return answeringNode((method) =>
    method === 'GET' && reads-- <= 0
      ? { ...begun, state: 'deleted', done: 3, deletedAt: '2026-11-27T20:00:01.000Z' }
      : { ...begun, state: 'deleting', done: 0 },
  );
}

const AGAIN = ['sale', 'delete', 'jazz', '--with-orders', '--export', 'no-such-file'];

test('a repeated command does not name a file that it has not written', async () => {
  const env = await deletingNode(1);
  expect(await callCli(AGAIN, { env })).toEqual({
    ...{ exitCode: 0, signal: null, stdout: 'jazz is deleted with 3 orders.\n' },
    stderr: 'jazz is being deleted already: nothing is written to no-such-file\n',
  });
});

test('a file whose name says that it is CSV is refused before anything is read or asked', async () => {
  const asked: string[] = [];
  const env = await answeringNode((_, { pathname }) => {
    asked.push(pathname);
    return { state: 'none' };
  });
  expect(await callCli([...AGAIN.slice(0, -1), 'jazz.CSV'], { env })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(
      /^error: --export writes NDJSON, and jazz.CSV would be taken for CSV: name it .ndjson; `.* order export` writes CSV\n/,
    ),
  });
  expect(asked).toEqual([]);
});

test('nor in JSON', async () => {
  const env = await deletingNode(1);
  const { stdout } = await callCli([...AGAIN, '--json'], { env });
  expect(JSON.parse(stdout)).toMatchObject({ saleId: 'jazz', state: 'deleted', orders: 3 });
  expect(JSON.parse(stdout)).not.toHaveProperty('export');
});

/** The ops port of a node without the sale. @param states of its deletion, in turn; the last one stays */
function nodeWithout(...states: ('none' | 'deleting' | 'away' | 'deleted')[]): Promise<NodeJS.ProcessEnv> {
  const begun = { saleId: 'jazz', orders: 3, actor: 'ann', reason: '', begunAt: '2026-11-27T20:00:00.000Z' };
  const ended = { ...begun, done: 3, deletedAt: '2026-11-27T20:00:01.000Z' };
  return answeringNode((method, { pathname }) => {
    const isBegun = method === 'DELETE' && states[0] === 'deleting';
    const isKnown = pathname.endsWith('/deletion') || isBegun;
    const state = isKnown && states.length > 1 ? states.shift()! : states[0]!;
    if (state === 'away')
      return [503, { title: 'Not available', code: 'unavailable', detail: 'Postgres does not answer' }];
    return isKnown ? { ...ended, state } : [404, { title: 'There is no such sale', code: 'unknown_sale' }];
  });
}

test('a command that is repeated after the end is told that the sale was deleted', async () => {
  const stderr =
    'error: there is no sale jazz: it was deleted at 2026-11-27T20:00:01.000Z by ann, with 3 orders\n';
  const env = await nodeWithout('deleted');
  expect(await callCli(AGAIN, { env })).toMatchObject({ exitCode: 1, stderr });
  const mistyped = await callCli(AGAIN, { env: await nodeWithout('none') });
  expect(mistyped).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('lists all sales') });
});

test.each([['sale', 'show'], ['sale', 'ledger'], ['order', 'list'], ['verify']])(
  '%s %s of a deleted sale says who deleted it',
  async (...command) => {
    const stderr =
      'error: there is no sale jazz: it was deleted at 2026-11-27T20:00:01.000Z by ann, with 3 orders\n';
    const gone = await callCli([...command, 'jazz'], { env: await nodeWithout('deleted') });
    expect(gone).toMatchObject({ exitCode: 1, stderr });
    const going = await callCli([...command, 'jazz'], { env: await nodeWithout('deleting') });
    expect(going.stderr).toBe('error: there is no sale jazz: it is being deleted by ann, with 3 orders\n');
  },
);

test('a node that does not know deletions is no reason for another error', async () => {
  const env = await answeringNode((_, { pathname }) => [
    404,
    { code: pathname.endsWith('/deletion') ? 'not_found' : 'unknown_sale', title: 'Not here' },
  ]);
  const { stderr } = await callCli(['sale', 'show', 'jazz'], { env });
  expect(stderr).toContain('there is no sale jazz\n');
});

test('a deletion that ends while the command is repeated is no failure', async () => {
  const env = await nodeWithout('deleting', 'deleted');
  expect(await callCli(AGAIN, { env })).toMatchObject({
    ...{ exitCode: 0, stdout: 'jazz is deleted with 3 orders.\n' },
  });
});

test('a node that does not answer for a while does not end the wait for a deletion', async () => {
  const env = await nodeWithout('deleting', 'deleting', 'away', 'away', 'deleted');
  expect(await callCli(AGAIN, { env })).toMatchObject({
    ...{ exitCode: 0, stdout: 'jazz is deleted with 3 orders.\n' },
  });
});

test('a clock that is set ahead does not end the wait for the deletion', async () => {
  const env = await nodeWithout('deleting', 'deleting', 'deleting', 'deleted');
  setClockAhead();
  expect(await callCli(AGAIN, { env })).toMatchObject({ exitCode: 0 });
});
