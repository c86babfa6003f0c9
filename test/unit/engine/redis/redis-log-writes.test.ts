/** Cursors, and the epoch that compensations raise. */
import { describe, expect, it } from 'vitest';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { CursorArguments, Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import { RedisLog } from '../../../../src/engine/redis/redis-log.ts';
import type { RedisClient } from '../../../../src/redis/clients.ts';

const WATERMARK = { saleId: 's', segment: 0, generation: 1, seq: 7, orders: 20, rejected: [] };

function logWith(failure?: Error) {
  const done: string[] = [];
  const cursors: CursorArguments[] = [];
  const scripts = {
    advance: async (chunk: CursorArguments[]) => {
      done.push(`advance ${chunk.length}`);
      cursors.push(...chunk);
      if (failure) throw failure;
    },
    compensate: async () => done.push('compensate') && 1,
  };
  const redis = {
    publish: async (channel: string) => done.push(`publish ${channel}`),
    hincrby: async (key: string, field: string, by: number) => done.push(`raise ${key} ${field} ${by}`),
    incr: async () => 1,
  };
  const cork = () => done.push('cork');
  const log = new RedisLog(
    redis as unknown as RedisClient,
    scripts as unknown as Scripts,
    new Keys('p:'),
    cork,
  );
  return { log, done, cursors };
}

describe('cursors', () => {
  it('name the last applied entry, if it is known', async () => {
    const { log, cursors } = logWith();
    await log.advance([WATERMARK, { ...WATERMARK, tails: [] }, { ...WATERMARK, tails: ['11', '12', '13'] }]);
    expect(cursors.map(({ generation, seq, orders, tail }) => [generation, seq, orders, tail])).toEqual([
      [1, 7, 20, ''],
      [1, 7, 20, ''],
      [1, 7, 20, '13'],
    ]);
  });

  it('are written in one write with the message, which comes last, 64 in a command', async () => {
    const { log, done } = logWith();
    await log.advance(Array.from({ length: 65 }, (_, segment) => ({ ...WATERMARK, segment })));
    expect(done).toEqual(['cork', 'advance 64', 'advance 1', 'publish p:watermarks']);
    await log.advance([]);
    expect(done).toHaveLength(4);
  });

  it('that can’t be written fail the advance', async () => {
    const failure = new Error('no room');
    await expect(logWith(failure).log.advance([WATERMARK])).rejects.toBe(failure);
  });
});

describe('compensations', () => {
  const back = (saleId: string, units = 1) => ({
    ...{ saleId, segment: 0, generation: 1, buyerId: 'anna', orderId: '11', units },
  });
  const raises = (done: readonly string[]) => done.filter((step) => step.startsWith('raise'));

  it('of one turn raise the epoch of each sale once, after all of them', async () => {
    const { log, done } = logWith();
    await Promise.all([log.compensate(back('s')), log.compensate(back('s')), log.compensate(back('t'))]);
    expect(done.slice(0, 3)).toEqual(['compensate', 'compensate', 'compensate']);
    expect(raises(done)).toEqual(['raise p:{s}:sale epoch 1', 'raise p:{t}:sale epoch 1']);
  });

  it('of a later turn raise it again, before they are done', async () => {
    const { log, done } = logWith();
    await log.compensate(back('s'));
    expect(raises(done)).toHaveLength(1);
    await log.compensate(back('s'));
    expect(raises(done)).toHaveLength(2);
  });

  it('of no units do not raise it', async () => {
    const { log, done } = logWith();
    await log.compensate(back('s', 0));
    expect(done).toEqual(['compensate']);
  });
});
