/** `stockade sale delete --export`: what is on the disk before the node is asked to delete. */
import { link, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { callCli } from '../../support/cli/cli.ts';

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return { ...real, open: vi.fn(real.open), link: vi.fn(real.link) };
});

const realOpen = vi.mocked(open).getMockImplementation()!;
const realLink = vi.mocked(link).getMockImplementation()!;
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

interface Node {
  /** The answer to requests to delete. Missing: the sale is deleted, if the request names its one order. */
  readonly refusal?: { readonly status: number; readonly code: string };
  /** The answer to requests that name another number of orders. */
  readonly refusalAtOnce?: { readonly status: number; readonly code: string; readonly detail?: string };
}

const OTHER_NUMBER = { status: 409, code: 'orders_differ' };

/** The ops port of a node with one archived sale that has one order. */
function archivingNode({ refusal, refusalAtOnce = OTHER_NUMBER }: Node = {}): Promise<NodeJS.ProcessEnv> {
  const sale = { ...saleToJson(parseSale({ id: 'jazz', stock: 5 })), state: 'closed', committedOrders: 1 };
  const archived = { ...sale, archivedAt: '2026-11-27T20:00:00.000Z' };
  return answeringNode((method, { pathname, searchParams }) => {
    const refused = searchParams.get('orders') === '1' ? refusal : refusalAtOnce;
    if (method === 'DELETE' && refused)
      return [refused.status, { ...refused, title: refused.code, orders: 2 }];
    if (method === 'DELETE') {
      done.push('deleted');
      return { saleId: 'jazz', state: 'deleted', orders: 1, done: 1 };
    }
    if (pathname.endsWith('/deletion')) return { saleId: 'jazz', state: 'none' };
    if (pathname.includes('/orders')) return { orders: [{ orderId: '7', saleId: 'jazz' }] };
    return archived;
  });
}

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'delete-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

const commandTo = (file: string) => ['sale', 'delete', 'jazz', '--with-orders', '--yes', '--export', file];
const deleteTo = async (file: string, node?: Node) =>
  callCli(commandTo(file), { env: await archivingNode(node) });

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

const UNAVAILABLE = { status: 503, code: 'unavailable' };

test('a refused deletion leaves nothing that the next attempt refuses', async () => {
  watchSyncs();
  const folder = await aFolder();
  const file = join(folder, 'jazz.ndjson');
  const differ = await deleteTo(file, { refusal: { status: 409, code: 'orders_differ' } });
  expect([differ.exitCode, differ.stderr]).toEqual([1, expect.stringContaining('export them again')]);
  expect(await readdir(folder)).toEqual([]);
  expect(await deleteTo(file)).toMatchObject({ exitCode: 0 });
  expect(await readdir(folder)).toEqual(['jazz.ndjson']);
});

test('a deletion that would be refused is refused before anything is written', async () => {
  watchSyncs();
  const folder = await aFolder();
  const detail = 'this role lacks DELETE on orders';
  const refusalAtOnce = { status: 503, code: 'missing_rights', detail };
  const refused = await deleteTo(join(folder, 'jazz.ndjson'), { refusalAtOnce });
  expect(refused).toMatchObject({ exitCode: 1, stderr: `error: ${detail}\n` });
  expect([done, await readdir(folder)]).toEqual([[], []]);
});

test('the export stays if the deletion may have begun, and the same command goes on with it', async () => {
  watchSyncs();
  const folder = await aFolder();
  const file = join(folder, 'jazz.ndjson');
  const failed = await deleteTo(file, { refusal: UNAVAILABLE });
  expect([failed.exitCode, failed.stderr]).toEqual([1, expect.stringContaining(`The orders are in ${file}`)]);
  const exported = await readFile(file, 'utf8');
  expect(exported).toMatch(/"end":true/);
  expect(await deleteTo(file, { refusal: UNAVAILABLE })).toMatchObject({ exitCode: 1 });
  expect(await deleteTo(file)).toMatchObject({ exitCode: 0 });
  expect(await readFile(file, 'utf8')).toBe(exported);
  expect(await readdir(folder)).toEqual(['jazz.ndjson']);
});

test.each([
  ['a part of an export', '{"orderId":"7","saleId":"jazz"}\n'],
  ['an export of other orders', '{"orderId":"8","saleId":"jazz"}\n{"end":true,"orders":1}\n'],
  ['an empty file', ''],
])('%s is not changed, and nothing is deleted', async (_, text) => {
  watchSyncs();
  const folder = await aFolder();
  const file = join(folder, 'jazz.ndjson');
  await writeFile(file, text);
  expect(await deleteTo(file)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('exists') });
  expect(done).toEqual([]);
  expect([await readdir(folder), await readFile(file, 'utf8')]).toEqual([['jazz.ndjson'], text]);
});

test('a file system that has no links is no hindrance, and an export is there once', async () => {
  watchSyncs();
  vi.mocked(link).mockImplementation(async () => {
    throw Object.assign(new Error('no such call'), { code: 'EPERM' });
  });
  onTestFinished(() => {
    vi.mocked(link).mockImplementation(realLink);
  });
  const folder = await aFolder();
  const file = join(folder, 'jazz.ndjson');
  expect(await deleteTo(file, { refusal: UNAVAILABLE })).toMatchObject({ exitCode: 1 });
  expect(await deleteTo(file)).toMatchObject({ exitCode: 0 });
  expect(await readFile(file, 'utf8')).toMatch(/"orderId":"7".*\n.*"end":true/);
  expect(await readdir(folder)).toEqual(['jazz.ndjson']);
});
