/** The connection for takes: when it sends, how long it waits, and what its errors mean. */
import { EventEmitter } from 'node:events';
import { type Redis, ReplyError } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BackendCorrupt, Busy, NotExecuted, OutcomeUnknown } from '../../../../../src/engine/errors.ts';
import { TakeConnection } from '../../../../../src/engine/redis/take/take-connection.ts';
import { monotonicMs } from '../../../../../src/lib/monotonic.ts';

const LIMIT_MS = 1_000;
/** Turns in which all promises without I/O are settled. */
const TURNS = 20;

class FakeRedis extends EventEmitter {
  status = 'ready';
  stream = { writable: true, cork: vi.fn(), uncork: vi.fn() };
  /** The reply to INFO. */
  server = 'redis_version:7.0.15\r\nrun_id:0a1b\r\n';
  readonly disconnect = vi.fn();
  readonly info = vi.fn(async (_section: string) => this.server);
  /** In milliseconds. */
  clockMs = 1_790_000_000_000;
  readonly time = vi.fn(async () => [
    String(Math.floor(this.clockMs / 1_000)),
    String((this.clockMs % 1_000) * 1_000),
  ]);
  readonly publish = vi.fn(async (_channel: string, _message: string) => 1);
}

/** As Redis 6.2 hands on an error of a command in a script. */
const inScript = (error: string) =>
  `ERR Error running script (call to f_${'0'.repeat(40)}): @user_script:9: @user_script: 9: -${error}`;

async function connect() {
  const redis = new FakeRedis();
  const connection = new TakeConnection(redis as unknown as Redis, LIMIT_MS);
  await connection.whenReady(LIMIT_MS);
  return { redis, connection };
}

/** Every state of a connection in which it can't send. */
const NOT_READY: [string, (redis: FakeRedis) => void][] = [
  ['is being made', (redis) => (redis.status = 'connecting')],
  ['is being closed', (redis) => (redis.stream.writable = false)],
];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Breaks the connection and makes it again, to a server that answers INFO so. */
async function reconnect(redis: FakeRedis, server: string) {
  redis.server = server;
  redis.emit('ready');
  for (let i = 0; i < TURNS; i++) await Promise.resolve();
}

describe('the server of a connection', () => {
  it.each(['run_id:0a1b\r\n', ''])(
    'is the same while the connection lasts (it tells "%s")',
    async (server) => {
      const { redis, connection } = await connect();
      await reconnect(redis, server);
      const before = connection.server;
      await connection.attempt(async () => 'the reply');
      expect(connection.server.isSame(before)).toBe(true);
    },
  );

  it.each([
    ['the same if it tells the same run id', 'redis_version:7\r\nrun_id:0a1b\r\ntcp_port:1\r\n', true],
    ['another if it tells another run id', 'run_id:ffff\r\n', false],
    ['another if it tells none', 'redis_version:7\r\n', false],
  ])('is after a reconnection %s', async (_, server, isSame) => {
    const { redis, connection } = await connect();
    const before = connection.server;
    await reconnect(redis, server);
    expect(connection.server.isSame(before)).toBe(isSame);
    expect(redis.info.mock.calls).toEqual([['server'], ['server']]);
  });

  it('is another if neither connection was told a run id', async () => {
    const { redis, connection } = await connect();
    await reconnect(redis, '');
    const before = connection.server;
    redis.info.mockRejectedValueOnce(new Error('NOPERM'));
    await reconnect(redis, '');
    expect(connection.server.isSame(before)).toBe(false);
  });

  it('is asked before any take', async () => {
    const redis = new FakeRedis();
    redis.status = 'connecting';
    const connection = new TakeConnection(redis as unknown as Redis, LIMIT_MS);
    expect(redis.info).not.toHaveBeenCalled();
    redis.status = 'ready';
    redis.emit('ready');
    await connection.whenReady(LIMIT_MS);
    await connection.attempt(async () => expect(redis.info).toHaveBeenCalled());
  });
});

describe('a connection', () => {
  it('that can send sends a take and a message', async () => {
    const { redis, connection } = await connect();
    expect(connection.ready).toBe(true);
    expect(await connection.attempt(async () => 'the reply')).toBe('the reply');
    connection.publish('hints', 'hello');
    expect(redis.publish.mock.calls).toEqual([['hints', 'hello']]);
    expect(redis.stream.cork).toHaveBeenCalledTimes(1);
  });

  it.each(NOT_READY)('that %s sends no take and no message', async (_, change) => {
    const { redis, connection } = await connect();
    change(redis);
    expect(connection.ready).toBe(false);
    const send = vi.fn(async () => 'the reply');
    await expect(connection.attempt(send)).rejects.toThrow(NotExecuted);
    connection.publish('hints', 'hello');
    expect(send).not.toHaveBeenCalled();
    expect(redis.publish).not.toHaveBeenCalled();
    expect(redis.stream.cork).not.toHaveBeenCalled();
  });
});

describe('the time of the server', () => {
  const IN_A_SECOND = 1_000;
  const order = (deadline?: number) => ({
    orderId: '1',
    buyerId: 'anna',
    quantity: 1,
    key: '',
    ...(deadline && { deadline }),
  });
  const inASecond = () => monotonicMs() + IN_A_SECOND;

  it('limits a take by the earliest deadline of its orders', async () => {
    const before = monotonicMs();
    const { redis, connection } = await connect();
    const deadline = inASecond();
    const madeBefore = connection.madeBefore([order(deadline + 5_000), order(), order(deadline)]);
    // Redis has told its time after `before`.
    expect(madeBefore).toBeLessThanOrEqual(redis.clockMs + deadline - before);
    expect(madeBefore).toBeGreaterThan(redis.clockMs);
    expect(connection.madeBefore([order()])).toBe(0);
    expect(connection.madeBefore([])).toBe(0);
  });

  it('is asked for before the connection is ready, and again after each reconnection', async () => {
    const redis = new FakeRedis();
    let tell = () => {};
    redis.time.mockReturnValue(new Promise((resolve) => (tell = () => resolve(['1790000000', '0']))));
    const connection = new TakeConnection(redis as unknown as Redis, LIMIT_MS);
    await reconnect(redis, '');
    expect(connection.ready).toBe(false);
    tell();
    await connection.whenReady(LIMIT_MS);
    expect(connection.ready).toBe(true);
    redis.emit('close');
    expect(connection.ready).toBe(false);
    redis.time.mockReturnValue(new Promise(() => {}));
    await reconnect(redis, '');
    expect(connection.ready).toBe(false);
  });

  it('that does not come in time drops the connection', async () => {
    const redis = new FakeRedis();
    redis.time.mockReturnValue(new Promise(() => {}));
    const connection = new TakeConnection(redis as unknown as Redis, LIMIT_MS);
    await vi.advanceTimersByTimeAsync(LIMIT_MS + 1);
    expect(redis.disconnect.mock.calls).toEqual([[true]]);
    expect(connection.ready).toBe(false);
  });

  it('limits no take if the user of the connection may not ask', async () => {
    const redis = new FakeRedis();
    redis.time.mockRejectedValue(new ReplyError('NOPERM'));
    const connection = new TakeConnection(redis as unknown as Redis, LIMIT_MS);
    await connection.whenReady(LIMIT_MS);
    expect(connection.ready).toBe(true);
    expect(connection.madeBefore([order(inASecond())])).toBe(0);
  });

  it('is learned from a take that was too late', async () => {
    const { redis, connection } = await connect();
    const told = redis.clockMs + 60_000;
    expect(connection.decode(`late ${told}`, 1)).toEqual({ status: 'late' });
    expect(connection.madeBefore([order(inASecond())])).toBeGreaterThan(told);
  });

  it('drops the connection if it does not come for another reason', async () => {
    const redis = new FakeRedis();
    redis.time.mockRejectedValue(new ReplyError('BUSY Redis is busy running a script'));
    const connection = new TakeConnection(redis as unknown as Redis, LIMIT_MS);
    await reconnect(redis, '');
    expect(connection.ready).toBe(false);
    expect(redis.disconnect).toHaveBeenCalledWith(true);
  });

  it('is asked for again every ten seconds, until the connection ends', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { redis, connection } = await connect();
    for (const [pauseMs, calls] of [
      [9_999, 1],
      [1, 2],
      [10_000, 3],
    ] as const) {
      vi.advanceTimersByTime(pauseMs);
      expect(redis.time).toHaveBeenCalledTimes(calls);
    }
    redis.time.mockRejectedValueOnce(new Error('read ECONNRESET'));
    vi.advanceTimersByTime(10_000);
    await Promise.resolve();
    expect(connection.ready).toBe(true);
    redis.emit('end');
    vi.advanceTimersByTime(20_000);
    expect(redis.time).toHaveBeenCalledTimes(4);
  });
});

describe('waiting for a connection', () => {
  /** Whether the wait ends without the clock going on. */
  async function endsAtOnce(wait: Promise<void>): Promise<boolean> {
    let ended = false;
    void wait.then(() => {
      ended = true;
    });
    for (let i = 0; i < TURNS; i++) await Promise.resolve();
    return ended;
  }

  it('ends at once if it is ready', async () => {
    const { connection } = await connect();
    expect(await endsAtOnce(connection.whenReady(50))).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends for all callers when it becomes ready, and leaves no timer', async () => {
    const { redis, connection } = await connect();
    redis.status = 'connecting';
    const waits = [connection.whenReady(50), connection.whenReady(60)];
    expect(await Promise.all(waits.map(endsAtOnce))).toEqual([false, false]);
    redis.status = 'ready';
    redis.emit('ready');
    expect(await Promise.all(waits.map(endsAtOnce))).toEqual([true, true]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('goes on if the connection breaks before the server has told its time', async () => {
    const { redis, connection } = await connect();
    let fail = () => {};
    redis.time.mockReturnValueOnce(
      new Promise((_, reject) => (fail = () => reject(new Error('read ECONNRESET')))),
    );
    await reconnect(redis, '');
    const wait = connection.whenReady(50);
    redis.status = 'reconnecting';
    redis.emit('close');
    fail();
    expect(await endsAtOnce(wait)).toBe(false);
    expect(redis.disconnect).not.toHaveBeenCalled();
    redis.status = 'ready';
    redis.emit('ready');
    expect(await endsAtOnce(wait)).toBe(true);
  });

  it('ends at its limit', async () => {
    const { redis, connection } = await connect();
    redis.status = 'connecting';
    const wait = connection.whenReady(50);
    vi.advanceTimersByTime(49);
    expect(await endsAtOnce(wait)).toBe(false);
    vi.advanceTimersByTime(1);
    expect(await endsAtOnce(wait)).toBe(true);
  });
});

describe('an attempt', () => {
  it('without a reply at the limit drops the connection for another, and its outcome is unknown', async () => {
    const { redis, connection } = await connect();
    const refused = expect(connection.attempt(() => new Promise(() => {}))).rejects.toThrow(
      /no reply from Redis within 1000 ms/,
    );
    await vi.advanceTimersByTimeAsync(LIMIT_MS + 1);
    await refused;
    expect(redis.disconnect.mock.calls).toEqual([[true]]);
    const late = connection.attempt(() => new Promise(() => {}));
    const unknown = expect(late).rejects.toThrow(OutcomeUnknown);
    await vi.advanceTimersByTimeAsync(LIMIT_MS + 1);
    await unknown;
  });

  it.each<[string, unknown, unknown]>([
    ...[
      ...['FENCED', 'OOM', 'LOADING', 'MISCONF', 'NOREPLICAS', 'NOSCRIPT', 'BADARG', 'BUSY', 'CLUSTERDOWN'],
      ...['NOAUTH', 'NOPERM', 'MOVED', 'ASK', 'TRYAGAIN'],
    ].map((code): [string, unknown, unknown] => [
      `of Redis, ${code}`,
      new ReplyError(`${code} no`),
      NotExecuted,
    ]),
    ['of the script in Redis 6.2, OOM', new ReplyError(inScript('OOM full')), NotExecuted],
    ['of the script in Redis 6.2, another', new ReplyError(inScript('WRONGTYPE a list')), BackendCorrupt],
    ['of a command that could not be sent', new Error("Stream isn't writeable and…"), NotExecuted],
    ['of the script', new ReplyError('CORRUPT a counter'), BackendCorrupt],
    ['of the script that quotes a code', new ReplyError('ERR in script: OOM'), BackendCorrupt],
    ['of the script that begins like a code', new ReplyError('BUSYKEY there'), BackendCorrupt],
    ['of the network', new Error('read ECONNRESET'), OutcomeUnknown],
    ['of another kind', new Busy('too many'), OutcomeUnknown],
    ['that is a text', 'gone', OutcomeUnknown],
  ])('with an error %s keeps the connection', async (_, error, kind) => {
    const { redis, connection } = await connect();
    await expect(connection.attempt(() => Promise.reject(error))).rejects.toThrow(kind as typeof NotExecuted);
    expect(redis.disconnect).not.toHaveBeenCalled();
  });

  it.each(['READONLY a replica', 'MASTERDOWN a replica', inScript('READONLY a replica')])(
    'at a server that is no primary any more, %s, leaves it',
    async (reply) => {
      const { redis, connection } = await connect();
      const attempt = connection.attempt(() => Promise.reject(new ReplyError(reply)));
      await expect(attempt).rejects.toThrow(NotExecuted);
      expect(redis.disconnect.mock.calls).toEqual([[true]]);
    },
  );
});
