/**
 * The export of orders: it is complete, or recognisably incomplete, and uses bounded memory, however slow its reader
 * is.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { type OpsHost, serveOps } from '../../../src/http/ops/ops-server.ts';
import type { Listener } from '../../../src/http/server/listener.ts';
import { chooseHttpServer } from '../../../src/node/process/http-server.ts';
import type { Order } from '../../../src/operations/order.ts';
import type { OrderPage, OrderQuery } from '../../../src/operations/order-list.ts';
import { callCli, MAIN } from '../../support/cli/cli.ts';
import { until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { HTTP_SERVERS } from '../../support/http/http-servers.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { redisAndPostgres } from '../../support/nodes/stores.ts';
import { query } from '../../support/shop/truth.ts';

const ORDERS = 200_000;
const PAGE = 1_000;
const TOKEN = 'a token of the operators';
/** Both HTTP servers close a connection on which a client is silent for 10 s, give or take 4 s. */
const SILENCE_MS = 16_000;
/** The process holds two or three of those that the client has not read. */
const MOST_PAGES_HELD = 20;

const orderOf = (n: number): Order =>
  ({ orderId: String(n), saleId: 'big', buyerId: `buyer-${n}`, quantity: 1, status: 'paid' }) as Order;

/** Pages that one end of a connection has sent, and the other has not read. The kernel may hold all, as its settings are. */
function pagesInKernel(...ports: [server: number, client: number]): number {
  const named = ports.map((port) => port.toString(16).toUpperCase().padStart(4, '0'));
  const bytes = ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .filter((line) => named.every((port) => line.includes(`:${port} `)))
    .map((line) => /^ *\d+: \S+ \S+ \w+ (\w+):(\w+)/.exec(line))
    .reduce((sum, found) => sum + Number.parseInt(found![1]!, 16) + Number.parseInt(found![2]!, 16), 0);
  return bytes / (PAGE * `${JSON.stringify(orderOf(ORDERS))}\n`.length);
}

/** A fake sale of 200,000 orders, which counts the pages that are read. */
class FakeOrders {
  pages = 0;
  /** The reading of the pages behind this many fails, at `failing`. */
  failAt = Number.POSITIVE_INFINITY;
  failing: Promise<void> = Promise.resolve();
  /** The reading of the pages behind these orders takes longer than any timeout of a silent connection. */
  slowAfter: ReadonlySet<string> = new Set();

  async listOrders(_: string, { after = '0', limit = 100 }: OrderQuery): Promise<OrderPage> {
    if (limit === PAGE && ++this.pages > this.failAt) {
      await this.failing;
      throw new Error('Postgres is gone');
    }
    if (limit === PAGE && this.slowAfter.has(after)) await delay(SILENCE_MS);
    const from = Number(after);
    const count = Math.min(limit, ORDERS - from);
    const orders = Array.from({ length: count }, (_, i) => orderOf(from + i + 1));
    return { orders, ...(from + count < ORDERS && { next: String(from + count) }) };
  }
}

describe.each(HTTP_SERVERS)('over %s', (kind) => {
  let listener: Listener | undefined;
  const orders = { current: new FakeOrders() };
  const faults: unknown[] = [];

  async function serve(): Promise<number> {
    const { open } = await chooseHttpServer(kind);
    orders.current = new FakeOrders();
    faults.length = 0;
    const host = { token: TOKEN, orders: orders.current, fault: (error: unknown) => faults.push(error) };
    listener = await serveOps(host as unknown as OpsHost, open, {
      host: '127.0.0.1',
      port: 0,
      isShared: false,
    });
    return listener.port;
  }

  afterEach(() => listener?.drain(0));

  const open = (port: number, format = 'ndjson', after = '', agent: Agent | false = false) =>
    request({
      ...{ host: '127.0.0.1', port, agent },
      path: `/v1/sales/big/orders/export?format=${format}${after && `&after=${after}`}`,
      headers: { authorization: `Bearer ${TOKEN}` },
    }).end();

  async function read(
    port: number,
    format: string,
    after = '',
    agent?: Agent,
    arrived: (text: string) => void = () => {},
  ): Promise<{ text: string; broken: unknown }> {
    const [response] = await new Promise<[AsyncIterable<Buffer>]>((resolve, reject) =>
      open(port, format, after, agent)
        .once('response', (one) => resolve([one]))
        .once('error', reject),
    );
    let [text, broken]: [string, unknown] = ['', undefined];
    try {
      for await (const chunk of response) {
        text += chunk;
        arrived(text);
      }
    } catch (error) {
      broken = error;
    }
    return { text, broken };
  }

  test('200,000 orders are exported to a slow client, page by page as it reads, and none is missing', async () => {
    const port = await serve();
    const response = await new Promise<import('node:http').IncomingMessage>((resolve) =>
      open(port).once('response', resolve),
    );
    const { localPort: clientPort } = response.socket;
    let [lines, rest, last, looked, held] = [0, '', '', 0, 0];
    // `expect` for each of them would take most of this file's time.
    const misplaced: string[] = [];
    for await (const chunk of response) {
      const parts = (rest + chunk).split('\n');
      rest = parts.pop()!;
      for (const line of parts) {
        last = line;
        const { orderId } = JSON.parse(line);
        if (orderId !== undefined && Number(orderId) !== ++lines) misplaced.push(line);
      }
      const ahead = orders.current.pages - lines / PAGE;
      // Seldom, because the kernel's list of connections is long when other tests run.
      if (ahead > looked + MOST_PAGES_HELD / 2) {
        held = Math.max(held, ahead - pagesInKernel(port, clientPort!));
        looked = ahead;
      }
      // A reader that is slower than the server could be.
      if (lines % 10_000 < 400) await delay(20);
    }
    expect(misplaced).toEqual([]);
    expect(lines).toBe(ORDERS);
    expect(JSON.parse(last)).toEqual({ end: true, orders: ORDERS });
    expect(held).toBeLessThan(MOST_PAGES_HELD);
    expect(orders.current.pages).toBe(ORDERS / PAGE);
  });

  test('a client that stops reading pauses the export; a client that disconnects ends it', async () => {
    const port = await serve();
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `GET /v1/sales/big/orders/export HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`,
    );
    await new Promise((resolve) => socket.once('readable', resolve));
    let seen = -1;
    await until(
      async () => {
        const still = orders.current.pages === seen;
        seen = orders.current.pages;
        await delay(200);
        return still;
      },
      { what: 'no more pages are read' },
    );
    expect(seen - pagesInKernel(port, socket.localPort!)).toBeLessThan(MOST_PAGES_HELD);
    expect(listener!.underWay()).toBe(1);
    socket.destroy();
    await until(async () => listener!.underWay() === 0, { what: 'the export ends' });
    expect(orders.current.pages).toBeLessThanOrEqual(seen + 1);
    expect(faults).toEqual([]);
  });

  test.each(['ndjson', 'csv'])(
    'an export in %s that breaks off has no end mark, and is reported',
    async (format) => {
      const port = await serve();
      orders.current.failAt = 5;
      // Not before all five have arrived: the server discards what it has not sent when it breaks off.
      const arrived = gate();
      orders.current.failing = arrived.opened;
      const { text, broken } = await read(port, format, '', undefined, (soFar) => {
        if (soFar.includes('buyer-5000')) arrived.open();
      });
      expect(broken).toMatchObject({ code: 'ECONNRESET' });
      expect(text).toContain('buyer-5000');
      expect(text).not.toContain('"end"');
      expect(faults).toMatchObject([{ message: 'Postgres is gone' }]);
    },
  );

  test('CSV goes on after a long silence, at the beginning or behind orders', async () => {
    const port = await serve();
    // Behind the names of the columns, behind nothing, and behind a page.
    orders.current.slowAfter = new Set(['0', '196500', '198700']);
    const texts = await Promise.all(['', '196500', '197700'].map((after) => read(port, 'csv', after)));
    expect(texts.map(({ broken }) => broken)).toEqual([undefined, undefined, undefined]);
    expect(texts.map(({ text }) => text.split('\r\n').length)).toEqual([ORDERS + 2, 3_501, 2_301]);
  });

  test('a client that keeps its connections open gets it whole, and the next one too', async () => {
    const port = await serve();
    const agent = new Agent({ keepAlive: true });
    for (let nth = 0; nth < 2; nth++) {
      const { text, broken } = await read(port, 'ndjson', '196500', agent);
      expect(broken).toBeUndefined();
      expect(text.trimEnd().split('\n')).toHaveLength(3_501);
      expect(JSON.parse(text.trimEnd().split('\n').at(-1)!)).toMatchObject({ end: true });
    }
    agent.destroy();
  });

  test('CSV has a header line and all orders', async () => {
    const port = await serve();
    const { text, broken } = await read(port, 'csv');
    expect(broken).toBeUndefined();
    const lines = text.split('\r\n');
    expect(lines[0]).toMatch(/^orderId,saleId,buyerId,quantity,status,/);
    expect(lines).toHaveLength(ORDERS + 2);
    expect(lines[ORDERS]).toMatch(/^200000,big,buyer-200000,1,paid,/);
  });
});

test('the command line writes the orders of a node’s sale, and continues after the last one', async () => {
  const stores = await redisAndPostgres();
  await using node = await startTestNode(stores);
  await node.ops.create({ id: 'big', stock: 100_000 }, 'test');
  await query(
    stores.databaseUrl,
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer)
     SELECT n, 'big', '=buyer' || n, 1, 'paid', true FROM generate_series(1, 5000) n`,
    [],
  );
  const folder = mkdtempSync(join(tmpdir(), 'stockade-export-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'orders.csv');
  const env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
  const to = (path: string) => ['order', 'export', 'big', '--output', path, '--json'];
  const args = to(file);
  const refuses = async (more: readonly string[], why: string) => {
    const before = readFileSync(file, 'utf8');
    const refused = await callCli([...args, ...more], { env });
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(why) });
    expect(readFileSync(file, 'utf8')).toBe(before);
  };
  const none = await callCli([...to(join(folder, 'none.csv')), '--until', '2022-01-01T00:00:00Z'], { env });
  expect(JSON.parse(none.stdout)).toMatchObject({ orders: 0 });
  // The name of the file says that it is a CSV.
  const all = await callCli(args, { env });
  expect(JSON.parse(all.stdout)).toMatchObject({ orders: 5_000, last: '5000', output: file });
  await refuses([], 'exists: name a new file');
  await refuses(['--after', '4999'], 'ends with order 5000: continue it with --after 5000');
  await refuses(['--after', '5000', '--format', 'ndjson'], 'is CSV: continue it with --format csv');
  const whole = readFileSync(file, 'utf8');
  writeFileSync(file, whole.slice(0, whole.indexOf('\n4001,') + 1));
  const rest = await callCli([...args, '--after', '4000'], { env });
  expect(JSON.parse(rest.stdout)).toMatchObject({ orders: 1_000, last: '5000' });
  expect(readFileSync(file, 'utf8')).toBe(whole);
  const lines = whole.split('\r\n');
  expect(lines).toHaveLength(5_002);
  expect(lines[1]).toMatch(/^1,big,'=buyer1,1,paid,,20/);
  const lineFile = join(folder, 'orders.ndjson');
  await callCli([...to(lineFile), '--buyer', '=buyer7'], { env });
  const complete = await callCli([...to(lineFile), '--after', '7'], { env });
  expect(complete).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('is complete') });
  // As after a power cut.
  truncateSync(file, statSync(file).size - 5);
  await refuses(['--after', '5000'], 'ends within a line');
  const toStdout = await callCli(['order', 'export', 'big', '--buyer', '=buyer7'], { env });
  expect(
    toStdout.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { orderId: '7', buyerId: '=buyer7' },
    { end: true, orders: 1 },
  ]);
  const mistyped = await callCli(['order', 'export', 'mistyped'], { env });
  expect(mistyped).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('no sale mistyped') });
});

test.each([
  ['the last lines', '199990', 1],
  ['a page', '196500', 400],
])(
  'a disk that is full before %s: it can be continued as it says, and has each order once',
  async (_, first, blocks) => {
    const { open } = await chooseHttpServer('node');
    const sales = { show: async () => ({ stock: 0, committedOrders: ORDERS }) };
    const host = { token: TOKEN, orders: new FakeOrders(), sales } as unknown as OpsHost;
    const listener = await serveOps(host, open, { host: '127.0.0.1', port: 0, isShared: false });
    onTestFinished(() => listener.drain(0));
    const folder = mkdtempSync(join(tmpdir(), 'stockade-export-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'orders.ndjson');
    /** @param limit largest size of a file, in blocks of 512 bytes: what is beyond is refused, as by a full disk */
    const run = (after: string, limit: number | 'unlimited') => {
      const limited = `trap '' XFSZ; ulimit -f ${limit}; exec "$0" "$@"`;
      const args = [MAIN, 'order', 'export', 'big', '--output', file, '--after', after];
      const child = spawn('sh', ['-c', limited, process.execPath, ...args], {
        env: { PATH: process.env.PATH, OPS_URL: `http://127.0.0.1:${listener.port}`, OPS_TOKEN: TOKEN },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let said = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
      return new Promise<{ exitCode: number | null; said: string }>((resolve) =>
        child.once('close', (exitCode) => resolve({ exitCode, said })),
      );
    };
    const { exitCode, said } = await run(first, blocks);
    expect(exitCode, said).toBe(1);
    const [, next = first] = /to continue: --after (\d+)$/m.exec(said) ?? [];
    expect(await run(next, 'unlimited')).toMatchObject({ exitCode: 0 });
    const ids = readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).orderId);
    const wanted = Array.from({ length: ORDERS - Number(first) }, (_, i) => String(Number(first) + i + 1));
    expect(ids).toEqual([...wanted, undefined]);
  },
);
