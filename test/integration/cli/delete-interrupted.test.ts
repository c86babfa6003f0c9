/** `stockade sale delete --export` that is ended while it writes the orders. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { RunningCli, runCli } from '../../support/cli/cli.ts';
import { until } from '../../support/until.ts';

/** The ops port of a node with an archived sale of two orders. @param hangs it keeps the second page of them for itself */
function archivingNode(hangs: boolean): Promise<NodeJS.ProcessEnv> {
  const sale = { ...saleToJson(parseSale({ id: 'jazz', stock: 5 })), state: 'closed', committedOrders: 2 };
  const answers = (method: string, url: URL): object | undefined => {
    if (method === 'DELETE') return { saleId: 'jazz', state: 'deleted', orders: 2, done: 2 };
    if (url.pathname.endsWith('/deletion')) return { saleId: 'jazz', state: 'none' };
    if (!url.pathname.endsWith('/orders')) return { ...sale, archivedAt: '2026-11-27T20:00:00.000Z' };
    const order = (orderId: string) => ({ orderId, saleId: 'jazz' });
    if (!url.searchParams.has('after')) return { orders: [order('7')], next: '7' };
    return hangs ? undefined : { orders: [order('8')] };
  };
  return answeringNode(answers);
}

test.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
  'an export that %s ends is not in the way of the next attempt',
  async (signal) => {
    const folder = await mkdtemp(join(tmpdir(), 'delete-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'jazz.ndjson');
    const command = ['sale', 'delete', 'jazz', '--with-orders', '--export', file];
    await using cli = new RunningCli(command, { env: await archivingNode(true) });
    await until(async () => (await readdir(folder)).length > 0, { what: 'a file is written' });
    cli.signal(signal);
    if (signal === 'SIGKILL') expect(await cli.ended).toMatchObject({ signal });
    else {
      const stderr = `Nothing was deleted, and ${file} was not written.\nerror: interrupted by ${signal}\n`;
      expect(await cli.ended).toMatchObject({ exitCode: 130, stderr: expect.stringContaining(stderr) });
      expect(await readdir(folder)).toEqual([]);
    }
    expect(await runCli(command, { env: await archivingNode(false) })).toMatchObject({ exitCode: 0 });
    expect(await readFile(file, 'utf8')).toMatch(
      /"orderId":"7".*\n.*"orderId":"8".*\n.*"end":true,"orders":2/,
    );
  },
);
