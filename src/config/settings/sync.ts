/** Settings of sync, which copies orders to Postgres. */
import { either, whole } from '../values/schemas.ts';
import type { SettingTable } from './setting.ts';

export interface SyncSettings {
  readonly sync: boolean;
  readonly syncBatchRows: number;
  readonly syncYieldMs: number;
  readonly rebalanceEveryMs: number;
  readonly archiveAfterDays: number;
}

export const syncSettings: SettingTable<SyncSettings> = {
  sync: {
    env: 'SYNC',
    flag: '--sync <on|off>',
    schema: either('on', 'off'),
    fallback: true,
    fallbackText: 'on',
    description:
      'Whether this node writes orders from the logs to Postgres. `off`: `stockade sync` must run elsewhere.',
    usedBy: ['node'],
  },
  syncBatchRows: {
    env: 'SYNC_BATCH_ROWS',
    flag: '--sync-batch-rows <n>',
    schema: whole(1, 50_000),
    fallback: 4_000,
    description: 'Most orders in one Postgres transaction.',
  },
  syncYieldMs: {
    env: 'SYNC_YIELD_MS',
    flag: '--sync-yield-ms <n>',
    schema: whole(0, 600_000),
    fallback: 15_000,
    description:
      'How long sync may leave orders in the logs while this node is busy with buyers and none of them waits for a commit. 0: not at all.',
    usedBy: ['node'],
  },
  rebalanceEveryMs: {
    env: 'REBALANCE_EVERY_MS',
    flag: '--rebalance-every-ms <n>',
    schema: whole(0, 3_600_000),
    fallback: 1_000,
    description:
      'How often sync evens out segments that have become uneven, before a buyer has to wait for it. 0: never.',
  },
  archiveAfterDays: {
    env: 'ARCHIVE_AFTER_DAYS',
    flag: '--archive-after-days <n>',
    schema: whole(0, 36_500),
    fallback: 30,
    description:
      'Sync closes and archives a sale this many days after it has ended or was closed. 0: no sale is archived.',
  },
};
