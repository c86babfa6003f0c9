/** What the reply of append-events.lua means. */
import { expect, it } from 'vitest';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import { RedisEvents } from '../../../../src/engine/redis/redis-events.ts';

const PART = { row: '7', kind: 'paid', at: '2026-01-01', lines: '', events: 0 } as const;

it.each<[string, unknown[], object]>([
  ['nothing was trimmed', [0, 0, ''], { events: 0, reachMs: 0, missed: [] }],
  [
    'groups have missed trimmed events',
    [30, 900, '', 'mails', 12, '7', '30'],
    {
      events: 30,
      reachMs: 900,
      missed: [
        { group: 'mails', events: 12 },
        { group: '7', events: 30 },
      ],
    },
  ],
  [
    'it may not look at what it trims',
    [3, 80, 'NOPERM no right to XINFO'],
    { events: 3, reachMs: 80, missed: [], unseen: 'NOPERM no right to XINFO' },
  ],
])('an append says that %s', async (_, reply, displaced) => {
  const asked: unknown[] = [];
  const scripts = {
    appendEvents: async (...args: unknown[]) => {
      asked.push(args);
      return reply;
    },
  };
  const events = new RedisEvents(scripts as unknown as Scripts, new Keys('p:'));
  expect(await events.append([PART], 50)).toStrictEqual(displaced);
  expect(asked).toEqual([['p:events', [PART], 50]]);
});
