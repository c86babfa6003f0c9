/**
 * E2: Stockade's own order ids: the same 31 bits of seconds, then 32 bits of (worker number, counter of that second) put
 * through a keyed bijection (src/engine/order-id.ts).
 *
 * Shows: unique, rising from second to second, no round trip. No counter outlives its second, so that there is no
 * daily reset, nothing to overflow, and nothing to lose. Without the key nobody can tell the next id or the volume.
 */
import { createHash } from 'node:crypto';
import { OrderIds } from '../../src/engine/order-id.ts';
import type { NamingRow } from '../parts/contract.ts';
import { MACHINE_CLOCK } from '../parts/setting.ts';

export const e2: NamingRow = {
  kind: 'naming',
  id: 'E2',
  title: 'Stockade: order ids by a keyed bijection',
  stores: [],
  guessable: false,
  roundTrips: 0,
  async open({ keyPrefix }, worker, { now } = MACHINE_CLOCK) {
    // The same on every node. In a shop it is drawn once, and kept in Postgres.
    const key = createHash('sha256').update(keyPrefix).digest();
    const ids = new OrderIds({ key, worker, now });
    return { next: async () => ids.next(), close: async () => {} };
  },
};
