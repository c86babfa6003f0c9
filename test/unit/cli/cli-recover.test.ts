/** `stockade recover` while it follows a rebuild. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';

const RUNNING = { saleId: 'jazz', state: 'running', step: 'load', done: 1, total: 3 };
const DONE = { saleId: 'jazz', state: 'done', generation: 2, tookMs: 100, losses: [] };
const AWAY = { title: 'Not available', code: 'unavailable', detail: 'Postgres does not answer' };

/** The ops port of a node that rebuilds `jazz`. @param looks what it answers, in turn */
async function rebuildingNode(...looks: ('away' | 'done')[]): Promise<NodeJS.ProcessEnv> {
  const server = createServer(({ method }, response) => {
    const look = method === 'POST' ? RUNNING : looks.shift() === 'away' ? AWAY : DONE;
    response
      .writeHead(look === AWAY ? 503 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(look));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { OPS_URL: `http://127.0.0.1:${port}`, OPS_TOKEN: 'a token of the operators' };
}

test('a node that does not answer for a moment does not end the wait', async () => {
  const env = await rebuildingNode('away', 'away', 'done');
  const { exitCode, stdout } = await callCli(['recover', 'jazz', '--yes'], { env });
  expect(stdout).toContain('jazz: rebuilt as generation 2');
  expect(exitCode).toBe(0);
});
