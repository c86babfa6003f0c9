/** `stockade recover` while it follows a rebuild. */
import { expect, test } from 'vitest';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { callCli } from '../../support/cli/cli.ts';

const RUNNING = { saleId: 'jazz', state: 'running', step: 'load', done: 1, total: 3 };
const DONE = { saleId: 'jazz', state: 'done', generation: 2, tookMs: 100, losses: [] };
const AWAY = { title: 'Not available', code: 'unavailable', detail: 'Postgres does not answer' };

/** The ops port of a node that rebuilds `jazz`. @param looks what it answers, in turn */
function rebuildingNode(...looks: ('away' | 'done')[]): Promise<NodeJS.ProcessEnv> {
  return answeringNode((method) => {
    if (method === 'POST') return RUNNING;
    return looks.shift() === 'away' ? [503, AWAY] : DONE;
  });
}

test('a node that does not answer for a moment does not end the wait', async () => {
  const env = await rebuildingNode('away', 'away', 'done');
  const { exitCode, stdout } = await callCli(['recover', 'jazz', '--yes'], { env });
  expect(stdout).toContain('jazz: rebuilt as generation 2');
  expect(exitCode).toBe(0);
});
