/** Settings of the process: its log and its shutdown. */
import { oneOf, whole } from '../values/schemas.ts';
import type { SettingTable } from './setting.ts';

export interface ProcessSettings {
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';
  readonly stopDelayMs: number;
  readonly shutdownGraceMs: number;
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const processSettings: SettingTable<ProcessSettings> = {
  logLevel: {
    env: 'LOG_LEVEL',
    flag: '--log-level <level>',
    schema: oneOf(...LOG_LEVELS),
    fallback: 'info',
    description: `${LOG_LEVELS.join(', ')}. Commands that end by themselves default to \`warn\`.`,
  },
  stopDelayMs: {
    env: 'STOP_DELAY_MS',
    flag: '--stop-delay-ms <n>',
    schema: whole(0, 600_000),
    fallback: 0,
    description:
      'After a signal to stop, how long a node still sells while `/readyz` says `503`, so that load balancers stop sending it buyers. Only then `SHUTDOWN_GRACE_MS` begins.',
    usedBy: ['node'],
  },
  shutdownGraceMs: {
    env: 'SHUTDOWN_GRACE_MS',
    flag: '--shutdown-grace-ms <n>',
    schema: whole(0, 600_000),
    fallback: 10_000,
    description:
      'When a process stops, how long requests under way on both ports are still answered. At most 5 s later the process has ended.',
  },
};
