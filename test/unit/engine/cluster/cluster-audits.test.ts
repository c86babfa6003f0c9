/** Audits of segments on several servers: they are read until no unit has moved between two reads. The test plays the servers. */
import type { Cluster } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { ClusterAudits } from '../../../../src/engine/cluster/cluster-audits.ts';
import { Keys } from '../../../../src/engine/redis/protocol/keys.ts';
import type { RawAudit, Scripts } from '../../../../src/engine/redis/protocol/scripts.ts';
import type { Command } from '../../../../src/redis/send-all.ts';

const KEYS = new Keys('p:');
const keyOf = (segment: number) => KEYS.segment({ saleId: 'web', segment }).segment;

interface Segment {
  readonly left?: number;
  readonly supplied?: number;
  readonly withdrawn?: number;
  readonly out?: string;
  readonly outSeq?: string;
}

/**
 * As audit.lua replies: state, left, taken, supplied, returned, credited, withdrawn, seq, the number of the last transfer out of it,
 * and the open transfer.
 */
const raw = ({ left = 5, supplied = 10, withdrawn = 0, out = '', outSeq = '' }: Segment): RawAudit => [
  ...['open', `${left}`, '5', `${supplied}`, '0', '0'],
  ...[`${withdrawn}`, '1', outSeq, out],
];

/** @param looks what the segments are at each read; the last one stays. `arrived`: the transfers that a receiver has had */
function serving(
  looks: readonly (readonly (Segment | RawAudit)[])[],
  arrived: Record<string, string> = {},
  failure: Error | null = null,
) {
  const reads = [0, 0];
  const asked: Command[] = [];
  const scripts = {
    audit: async ([key]: readonly string[]) => {
      const segment = key === keyOf(0) ? 0 : 1;
      const look = looks[Math.min(reads[segment]!++, looks.length - 1)]!;
      const found = look[segment]!;
      return [
        found === null || Array.isArray(found) || typeof found === 'string' ? found : raw(found as Segment),
      ];
    },
  };
  const sendAll = async (commands: readonly Command[]) => {
    asked.push(...commands);
    return commands.map(
      ([, key, field]) => [failure, failure ? undefined : (arrived[`${key} ${field}`] ?? null)] as const,
    );
  };
  const audits = new ClusterAudits({} as Cluster, scripts as unknown as Scripts, KEYS, sendAll);
  return { audit: () => audits.audit('web', 2, 1), reads: () => reads[0], asked };
}

describe('an audit on a cluster', () => {
  it('is what two reads in a row agree on', async () => {
    const before = [{ supplied: 10 }, { supplied: 10 }];
    const after = [{ supplied: 7 }, { supplied: 13 }];
    const { audit, reads } = serving([before, [{ supplied: 7 }, { supplied: 10 }], after, after]);
    expect(await audit()).toMatchObject([{ supplied: 7 }, { supplied: 13 }]);
    expect(reads()).toBe(4);
  });

  it.each([
    ['units are sold', [{ left: 5 }, {}], [{ left: 4 }, {}], 2],
    ['an operator withdraws units', [{}, {}], [{ supplied: 8, withdrawn: 2 }, {}], 2],
    ['a transfer is open', [{}, {}], [{ out: '3 1 4' }, {}], 3],
    ['a segment is gone', [{}, {}], [null, {}], 3],
    ['a counter is damaged', [{}, {}], ['not a hash', {}], 3],
    ['units move out and back', [{ outSeq: '6' }, { outSeq: '5' }], [{ outSeq: '6' }, { outSeq: '7' }], 3],
  ] as const)('while %s', async (_, first, second, times) => {
    const { audit, reads } = serving([first, second]);
    await audit();
    expect(reads()).toBe(times);
  });

  it('counts the units of an open transfer as under way until the receiver has had it', async () => {
    const segments = [{ out: '3 1 4' }, { out: '8 0 2' }];
    const { audit, asked } = serving([segments], { [`${keyOf(0)} from:1`]: '8' });
    expect(await audit()).toMatchObject([{ inTransit: 4 }, { inTransit: 0 }]);
    expect(asked.slice(0, 2)).toEqual([
      ['hget', keyOf(1), 'from:0'],
      ['hget', keyOf(0), 'from:1'],
    ]);
  });

  it('names a record of a transfer that can’t be read', async () => {
    const { audit } = serving([[{ out: 'x' }, {}]]);
    expect(await audit()).toMatchObject([
      { found: 'fault', fault: 'the record of a transfer is "x"' },
      { found: 'sound' },
    ]);
  });

  it('ends after ten reads of a sale whose units keep moving, and says that the sum is not certain', async () => {
    const looks = Array.from({ length: 20 }, (_, i) => [{ supplied: 100 + i }, {}]);
    const { audit, reads } = serving(looks);
    expect(await audit()).toMatchObject([{ supplied: 109, isMoving: true }, { isMoving: true }]);
    expect(reads()).toBe(10);
  });

  it('is certain if the last two of ten reads agree', async () => {
    const looks = Array.from({ length: 9 }, (_, i) => [{ supplied: 100 + i }, {}]);
    const { audit, reads } = serving(looks);
    for (const found of await audit()) expect(found).not.toHaveProperty('isMoving');
    expect(reads()).toBe(10);
  });

  it('fails if the receiver of an open transfer can’t be read', async () => {
    const { audit } = serving([[{ out: '3 1 4' }, {}]], {}, new Error('the server is away'));
    await expect(audit()).rejects.toThrow('the server is away');
  });
});
