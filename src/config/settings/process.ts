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
      'How long a node still sells after a signal to stop. In that time `/readyz` says `503`, so that load balancers stop sending it buyers. `SHUTDOWN_GRACE_MS` begins afterwards.',
    usedBy: ['node'],
  },
  shutdownGraceMs: {
    env: 'SHUTDOWN_GRACE_MS',
    flag: '--shutdown-grace-ms <n>',
    schema: whole(0, 600_000),
    fallback: 10_000,
    description:
      'How long a stopping process still answers the requests under way on both ports. It ends at most 5 s later.',
  },
};
