/** The console at the ops port, over both HTTP servers: its files, and the stream of its pictures. */
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type OpsHost, serveOps } from '../../../src/http/ops/ops-server.ts';
import type { Listener } from '../../../src/http/server/listener.ts';
import { ConsoleFeed } from '../../../src/node/console/console-feed.ts';
import type { NodeSources } from '../../../src/node/console/node-sources.ts';
import { chooseHttpServer } from '../../../src/node/process/http-server.ts';
import {
  type ConsoleOperations,
  type ConsolePicture,
  MAX_CONSOLES,
} from '../../../src/operations/console/console-operations.ts';
import { until } from '../../support/fixtures.ts';
import { askOnce } from '../../support/http/ask-once.ts';
import { HTTP_SERVERS } from '../../support/http/http-servers.ts';

const TOKEN = 'a token of some length';
/** A page of sales that no socket's buffers hold many of. */
const LARGE = 'x'.repeat(200_000);

class FakeSources implements NodeSources {
  lists = 0;
  title = 'small';
  readonly node = async () => ({ connections: 0, queued: 0, waiting: 0 });
  readonly totals = async () => [];
  readonly processes = () => ({ process: 'host:1', version: '1.0.0', others: [] });
  readonly list = async () => ({ sales: [{ id: 'a', title: this.title, at: ++this.lists }] }) as never;
  readonly detail = async () => ({ sale: { id: 'a' }, segments: [] }) as never;
}

function counted(feed: ConsoleFeed, made: number[]): ConsoleOperations {
  async function* count(pictures: AsyncIterable<ConsolePicture>, at: number): AsyncGenerator<ConsolePicture> {
    for await (const picture of pictures) {
      made[at]!++;
      yield picture;
    }
  }
  return { watch: (query) => count(feed.watch(query), made.push(0) - 1) };
}

describe.each(HTTP_SERVERS)('over %s', (kind) => {
  let listener: Listener;
  let sources: FakeSources;
  let feed: ConsoleFeed;
  let sockets: Socket[];
  /** How many pictures were made for each console, in the order of their beginning. */
  let made: number[];
  const faults: unknown[] = [];

  beforeEach(async () => {
    const { open } = await chooseHttpServer(kind);
    [sources, sockets, faults.length] = [new FakeSources(), [], 0];
    feed = new ConsoleFeed(sources, { everyMs: 20, totalsEveryMs: 100, readingMs: 10 });
    made = [];
    const host = {
      token: TOKEN,
      console: counted(feed, made),
      fault: (error: unknown) => faults.push(error),
    };
    listener = await serveOps(host as unknown as OpsHost, open, {
      host: '127.0.0.1',
      port: 0,
      isShared: false,
    });
  });

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    feed.stop();
    await listener.drain(0);
    expect(faults).toEqual([]);
  });

  const get = (path: string, headers: Record<string, string> = {}) =>
    askOnce(listener.port, path, { headers });

  const withToken = { authorization: `Bearer ${TOKEN}` };

  /** Opens a stream. */
  function stream(query = ''): Stream {
    const socket = connect(listener.port, '127.0.0.1');
    sockets.push(socket);
    socket.write(
      `GET /v1/console/events${query} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`,
    );
    return new Stream(socket);
  }

  test('the page and its files need no token, and come with a policy that allows nothing else', async () => {
    const page = await get('/console');
    expect(page).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
    const named = [...page.body.matchAll(/(?:src|href)="(console\/[^"]+)"/g)].map((match) => match[1]);
    expect(named.length).toBeGreaterThanOrEqual(3);
    const queue = [...new Set<string>(named)];
    let bytes = 0;
    for (const path of queue) {
      const file = await get(`/${path}`);
      expect(file, path).toMatchObject({
        status: 200,
        headers: {
          'content-security-policy': page.headers['content-security-policy'],
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
          'cache-control': 'no-store',
        },
      });
      bytes += file.body.length;
      for (const [, name] of file.body.matchAll(/ from '\.\/([\w-]+\.js)'/g))
        if (!queue.includes(`console/${name}`)) queue.push(`console/${name}`);
    }
    expect(queue.length).toBeGreaterThan(10);
    // Small enough for a slow line; it grew to this size when it was written.
    expect(bytes).toBeLessThan(120_000);
    const policy = page.headers['content-security-policy']!.split('; ');
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ]),
    );
    expect(page.headers['content-security-policy']).not.toMatch(/unsafe|http|\*/);
    expect(page.headers).not.toHaveProperty('set-cookie');
  });

  test.each(['nothing.js', '..%2fpackage.json', '%2e%2e', 'index.html%00', 'constructor'])(
    'there is no file %s',
    async (name) => {
      expect(await get(`/console/${name}`)).toMatchObject({ status: 404, code: 'not_found' });
    },
  );

  test('the stream needs the token', async () => {
    expect(await get('/v1/console/events')).toMatchObject({ status: 401 });
    const wrong = { authorization: 'Bearer wrong' };
    expect(await get('/v1/console/events', wrong)).toMatchObject({ status: 401 });
    expect(await get(`/v1/console/events?token=${encodeURIComponent(TOKEN)}`)).toMatchObject({ status: 401 });
    expect(sources.lists).toBe(0);
  });

  test.each(['limit=101', 'limit=x', 'state=odd', 'saleId=..', 'after=1', 'limit=1&limit=2', 'more=1'])(
    'the query %s is refused',
    async (query) => {
      const answer = await get(`/v1/console/events?${query}`, withToken);
      expect(answer).toMatchObject({ status: 400, code: 'invalid_request' });
      expect(answer.body.faults).toHaveLength(1);
    },
  );

  test('the stream brings one picture after the other, until the client goes', async () => {
    const console = stream('?limit=1&saleId=a');
    await until(() => console.pictures >= 3, { what: 'three pictures' });
    expect(console.head).toMatch(/content-type: text\/event-stream/i);
    expect(console.head).toMatch(/cache-control: no-store/i);
    const data = /^data: (.*)$/m.exec(console.last)![1]!;
    expect(JSON.parse(data)).toMatchObject({
      process: 'host:1',
      version: '1.0.0',
      node: { value: { connections: 0 } },
      list: { value: { sales: [{ id: 'a' }] } },
      detail: { value: { sale: { id: 'a' } } },
    });
    expect(listener.underWay()).toBe(1);
    console.socket.destroy();
    await until(() => feed.consoles === 0 && listener.underWay() === 0, { what: 'the console is closed' });
  });

  test('a console beyond the limit is refused, and the next one that closes makes room', async () => {
    const open = Array.from({ length: MAX_CONSOLES }, () => stream('?limit=0'));
    await until(() => feed.consoles === MAX_CONSOLES, { what: 'all consoles are open' });
    const refused = await get('/v1/console/events', withToken);
    expect(refused).toMatchObject({ status: 503, code: 'busy', headers: { 'retry-after': '1' } });
    expect(refused.body.detail).toContain('50 consoles');
    open[0]!.socket.destroy();
    await until(() => feed.consoles < MAX_CONSOLES, { what: 'one is closed' });
    const late = stream();
    await until(() => late.pictures > 0, { what: 'a picture' });
  });

  test('a reader that stops gets no queue of pictures, and the newest one when it goes on', async () => {
    sources.title = LARGE;
    const slow = stream();
    await until(() => slow.pictures > 0, { what: 'a picture' });
    slow.socket.pause();
    const other = stream('?limit=0');
    const tenMore = (of = other.pictures) => until(() => other.pictures > of + 10, { what: 'ten pictures' });
    // The kernel's buffers take some pictures before the reader has no room.
    for (let before = -1; before !== made[0]; ) {
      before = made[0]!;
      await tenMore();
    }
    const of = sources.lists;
    slow.socket.resume();
    await until(() => Number(/"at":(\d+)}/.exec(slow.last)?.[1]) >= of, {
      what: 'a picture that was made after the pause',
    });
    expect(slow.pictures).toBeLessThan(sources.lists);
  });

  test('a node that stops ends all streams at once', async () => {
    const console = stream();
    await until(() => console.pictures > 0, { what: 'a picture' });
    const closed = new Promise((resolve) => console.socket.once('close', resolve));
    feed.stop();
    await listener.drain(60_000);
    await closed;
    expect(listener.underWay()).toBe(0);
  });
});

/** What a client has read of a stream: the last picture, and how many there were. */
class Stream {
  readonly socket: Socket;
  head = '';
  pictures = 0;
  last = '';
  #rest = '';

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('data', (bytes) => this.#read(String(bytes)));
  }

  #read(text: string): void {
    const events = (this.#rest + text).split('\n\n');
    this.#rest = events.pop()!;
    for (const event of events.filter((each) => each.includes('data: '))) {
      if (this.pictures++ === 0) this.head = event;
      this.last = event;
    }
  }
}
