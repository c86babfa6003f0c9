/** Settings of purchases: deadlines, bounds, and how units are taken. */
import { MAX_BATCH_ORDERS } from '../../engine/limits.ts';
import { oneOf, text, whole } from '../values/schemas.ts';
import type { SettingTable } from './setting.ts';

export interface LimitsSettings {
  readonly requestDeadlineMs: number;
  readonly takeTimeoutMs: number;
  readonly laneCapacity: number;
  readonly maxConnections: number;
  readonly logBacklogMax: number;
  readonly strategy: 'script' | 'lock';
  readonly lockWork: string | undefined;
}

export const limitsSettings: SettingTable<LimitsSettings> = {
  requestDeadlineMs: {
    env: 'REQUEST_DEADLINE_MS',
    flag: '--request-deadline-ms <n>',
    schema: whole(100, 30_000),
    fallback: 2_000,
    description:
      'A purchase is answered within this time, if necessary with `unknown`; so is a buyer’s `GET`, if necessary with `unavailable`. Fetching keys from `JWT_JWKS_URL` may take the same time again.',
  },
  takeTimeoutMs: {
    env: 'TAKE_TIMEOUT_MS',
    flag: '--take-timeout-ms <n>',
    schema: whole(10, 29_999),
    fallback: 500,
    description:
      'How long one call to Redis may take before it is repeated. Less than `REQUEST_DEADLINE_MS`.',
  },
  laneCapacity: {
    env: 'LANE_CAPACITY',
    flag: '--lane-capacity <n>',
    schema: whole(1, 1_000_000),
    fallback: 4_096,
    description: 'Purchases that may wait in front of one segment, in each worker. More are answered `busy`.',
  },
  maxConnections: {
    env: 'MAX_CONNECTIONS',
    flag: '--max-connections <n>',
    schema: whole(1, 1_000_000),
    fallback: 16_000,
    description:
      'Buyers’ connections that a node serves; its workers share them. At most half of them may listen to sales. Above this number, requests are answered `busy` and their connections closed. Above nine eighths of it, new connections are closed at once.',
  },
  logBacklogMax: {
    env: 'LOG_BACKLOG_MAX',
    flag: '--log-backlog-max <n>',
    // With less than the largest batch, a log could never take the batch of a full lane.
    schema: whole(MAX_BATCH_ORDERS, 100_000_000),
    fallback: 1_000_000,
    description:
      "Most orders in one segment's log that are not in Postgres yet. Above that, purchases are answered `busy`.",
    shared: 'value',
  },
  strategy: {
    env: 'STRATEGY',
    flag: '--strategy <script|lock>',
    schema: oneOf('script', 'lock'),
    fallback: 'script',
    description:
      "How units are taken: `script`, or `lock` to do so under the segment's lock. `lock` needs `REDIS_URL`.",
    shared: 'value',
  },
  lockWork: {
    env: 'LOCK_WORK',
    flag: '--lock-work <file>',
    schema: text,
    fallback: undefined,
    description:
      "A JavaScript module whose export `inside` does the shop's own work under the lock and may refuse orders. Needs `STRATEGY=lock`.",
    shared: 'file',
  },
};
