/** `stockade sale delete --export`: what is on the disk before the node is asked to delete. */
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import { callCli } from '../../support/cli/cli.ts';

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return { ...real, open: vi.fn(real.open) };
});

const realOpen = vi.mocked(open).getMockImplementation()!;
let done: string[];

// To load all commands takes longer than a test may.
beforeAll(async () => {
  await callCli(['nonsense']);
}, 60_000);

beforeEach(() => {
  done = [];
});

/** Each sync through a file handle is noted, or fails. */
function watchSyncs(error?: Error): void {
  vi.mocked(open).mockImplementation(async (...args) => {
    const handle = await realOpen(...args);
    const sync = handle.sync.bind(handle);
    handle.sync = async () => {
      if (error) throw error;
      await sync();
      done.push(`synced ${String(args[0])}`);
    };
    return handle;
  });
}

/** The ops port of a node with one archived sale that has one order. */
async function archivingNode(): Promise<NodeJS.ProcessEnv> {
  const sale = { ...saleToJson(parseSale({ id: 'jazz', stock: 5 })), state: 'closed', committedOrders: 1 };
  const archived = { ...sale, archivedAt: '2026-11-27T20:00:00.000Z' };
  const server = createServer(({ method, url }, response) => {
    const body = () => {
      if (method === 'DELETE') {
        done.push('deleted');
        return { saleId: 'jazz', state: 'deleted', orders: 1, done: 1 };
      }
      if (url!.endsWith('/deletion')) return { saleId: 'jazz', state: 'none' };
      if (url!.includes('/orders')) return { orders: [{ orderId: '7', saleId: 'jazz' }] };
      return archived;
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { OPS_URL: `http://127.0.0.1:${port}`, OPS_TOKEN: 'a token of the operators' };
}

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'delete-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

const deleteTo = async (file: string) =>
  callCli(['sale', 'delete', 'jazz', '--with-orders', '--yes', '--export', file], {
    env: await archivingNode(),
  });

test('the name of the file is on the disk before its orders are deleted', async () => {
  watchSyncs();
  const folder = await aFolder();
  const file = join(folder, 'jazz.ndjson');
  expect(await deleteTo(file)).toMatchObject({ exitCode: 0 });
  expect(await readFile(file, 'utf8')).toMatch(/"orderId":"7".*\n.*"end":true/);
  expect(done).toEqual([`synced ${folder}`, 'deleted']);
});

test('if the disk fails, nothing is deleted, and no file is in the way of the next attempt', async () => {
  watchSyncs(Object.assign(new Error('the disk is broken'), { code: 'EIO' }));
  const folder = await aFolder();
  const { exitCode, stderr } = await deleteTo(join(folder, 'jazz.ndjson'));
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('the disk is broken')]);
  expect(done).toEqual([]);
  expect(await readdir(folder)).toEqual([]);
});

test.each(['EINVAL', 'ENOTSUP'])(
  'a file system that can’t sync a folder is no hindrance: %s',
  async (code) => {
    watchSyncs(Object.assign(new Error('no such call'), { code }));
    expect(await deleteTo(join(await aFolder(), 'jazz.ndjson'))).toMatchObject({ exitCode: 0 });
    expect(done).toEqual(['deleted']);
  },
);
