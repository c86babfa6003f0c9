/** What a subscriber hears, what it reports, and how it ends. */
import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { BackendEvents } from '../../../../../src/engine/contract.ts';
import { BackendCorrupt } from '../../../../../src/engine/errors.ts';
import { Keys } from '../../../../../src/engine/redis/protocol/keys.ts';
import { listen } from '../../../../../src/engine/redis/protocol/subscription.ts';

const HEARTBEAT_MS = 2_000;
const REPORT_EVERY_MS = 10_000;

class FakeRedis extends EventEmitter {
  readonly subscribe = vi.fn(async (..._channels: unknown[]) => 1);
  readonly ping = vi.fn(async () => 'PONG');
  readonly disconnect = vi.fn();
}

async function subscribe(events: BackendEvents) {
  const redis = new FakeRedis();
  const end = await listen(redis as unknown as Redis, new Keys('p:'), events);
  return { redis, end, tell: (channel: string, message: string) => redis.emit('message', channel, message) };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('a subscriber', () => {
  const WATERMARK = { saleId: 's', segment: 0, generation: 1, seq: 2, orders: 3, rejected: [] };
  const NEWS = { from: '0123456789abcdef', sales: 3 };

  it('hears each message as what its channel is for', async () => {
    const heard: unknown[] = [];
    const { tell } = await subscribe({
      watermarks: (watermarks) => heard.push(['watermarks', watermarks]),
      hint: (hint) => heard.push(['hint', hint]),
      saleChanged: (saleId) => heard.push(['sale', saleId]),
      syncNews: (news) => heard.push(['news', news]),
      foreign: (error) => heard.push(error),
    });
    tell('p:watermarks', JSON.stringify([WATERMARK]));
    tell('p:sales', 's');
    tell('p:hints', 's 1 0\nt 0 2');
    tell('p:syncs', JSON.stringify(NEWS));
    expect(heard).toEqual([
      ['watermarks', [WATERMARK]],
      ['sale', 's'],
      ['hint', { saleId: 's', awaited: true, segments: [0] }],
      ['hint', { saleId: 't', awaited: false, segments: [2] }],
      ['news', NEWS],
    ]);
  });

  const ALL: [keyof BackendEvents, string][] = [
    ['watermarks', 'p:watermarks'],
    ['hint', 'p:hints'],
    ['saleChanged', 'p:sales'],
    ['syncNews', 'p:syncs'],
  ];

  it.each(ALL)('that handles %s alone subscribes to %s alone', async (name, channel) => {
    const { redis } = await subscribe({ [name]: () => {} });
    expect(redis.subscribe.mock.calls).toEqual([[channel]]);
  });

  it('keeps its connection alive, also if a ping fails', async () => {
    const { redis, end } = await subscribe({ hint: () => {} });
    redis.ping.mockRejectedValueOnce(new Error('gone'));
    vi.advanceTimersByTime(HEARTBEAT_MS * 3);
    expect(redis.ping).toHaveBeenCalledTimes(3);
    await end();
  });

  it('hears nothing after its end: the connection is closed and no timer is left', async () => {
    const hint = vi.fn();
    const { redis, end, tell } = await subscribe({ hint });
    await end();
    tell('p:hints', 's 1 0');
    expect(hint).not.toHaveBeenCalled();
    expect(redis.disconnect).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('fails by its own errors, which are no invalid messages', async () => {
    const foreign = vi.fn();
    const failure = new Error('a mistake');
    const saleChanged = () => {
      throw failure;
    };
    const { tell } = await subscribe({ saleChanged, foreign });
    expect(() => tell('p:sales', 's')).toThrow(failure);
    expect(foreign).not.toHaveBeenCalled();
  });
});

describe('an invalid message', () => {
  it('is ignored, and the next one is heard', async () => {
    const heard: string[] = [];
    const { tell } = await subscribe({ saleChanged: (saleId) => heard.push(saleId) });
    tell('p:sales', 'no id');
    tell('p:sales', 's');
    expect(heard).toEqual(['s']);
  });

  it('is reported, at most once in ten seconds', async () => {
    const foreign = vi.fn();
    const { tell } = await subscribe({ saleChanged: () => {}, hint: () => {}, foreign });
    tell('p:sales', 'no id');
    tell('p:hints', 'no hint');
    expect(foreign.mock.calls).toEqual([[expect.any(BackendCorrupt)]]);
    vi.advanceTimersByTime(REPORT_EVERY_MS - 1);
    tell('p:hints', 'no hint');
    expect(foreign).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1);
    tell('p:hints', 'no hint');
    expect(foreign).toHaveBeenCalledTimes(2);
  });
});
