import type { Cluster } from 'ioredis';
import type { SendAll } from '../../redis/send-all.ts';
import type { SegmentAudit } from '../contract.ts';
import { BackendCorrupt } from '../errors.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import type { RawAudit, Scripts } from '../redis/protocol/scripts.ts';
import { decodeAudit, RedisAudits } from '../redis/redis-audits.ts';
import { begunUnits } from '../sale/begun-units.ts';
import { readUntilStable } from './stable-read.ts';
import { unarrived } from './unarrived.ts';

interface Seen {
  readonly found: SegmentAudit;
  /** The number of the last transfer out of the segment. It only rises. */
  readonly lastOut: string | null | undefined;
}

/** Audits segments on several servers: reads them until no unit has moved between two reads. */
export class ClusterAudits extends RedisAudits {
  readonly #scripts: Scripts;
  readonly #keys: Keys;
  readonly #sendAll: SendAll;

  constructor(cluster: Cluster, scripts: Scripts, keys: Keys, sendAll: SendAll) {
    super(cluster, scripts, keys);
    this.#scripts = scripts;
    this.#keys = keys;
    this.#sendAll = sendAll;
  }

  override async audit(
    saleId: string,
    segments: number,
    generation: number,
  ): Promise<readonly SegmentAudit[]> {
    const { seen, isStable } = await readUntilStable(
      () => this.#readOnce(saleId, segments, generation),
      (read) => read.map(movedUnits),
    );
    return seen.map(({ found }) =>
      found.found === 'sound' && !isStable ? { ...found, isMoving: true } : found,
    );
  }

  #readOnce(saleId: string, segments: number, generation: number): Promise<Seen[]> {
    const keys = this.#keys.segments(saleId, segments);
    return Promise.all(
      keys.map(async (key, segment) => {
        const [values = null] = await this.#scripts.audit([key], generation);
        // The last two values are the number of the last transfer out of the segment, and the record of an open one.
        const lastOut = Array.isArray(values) ? values.at(-2) : undefined;
        return { found: await this.#withTransit(saleId, segment, values), lastOut };
      }),
    );
  }

  async #withTransit(saleId: string, segment: number, values: RawAudit): Promise<SegmentAudit> {
    const found = decodeAudit(values);
    if (found.found !== 'sound') return found;
    try {
      const record = Array.isArray(values) ? values.at(-1) : null;
      return {
        ...found,
        inTransit: await unarrived(this.#sendAll, this.#keys, { saleId, segment }, record),
      };
    } catch (error) {
      if (!(error instanceof BackendCorrupt)) throw error;
      return { found: 'fault', fault: error.message };
    }
  }
}

/**
 * The part of a segment's counters that only transfers change. Other changes of `supplied` have counters of their
 * own. Units that have come and gone between two reads leave no trace in these, except for the number of the last transfer.
 */
function movedUnits({ found, lastOut }: Seen): unknown {
  if (found.found !== 'sound') return found;
  return [begunUnits(found), found.inTransit, lastOut];
}
