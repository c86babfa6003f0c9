/** Settings of the public port: where it listens, and how many threads serve it. */

import { availableParallelism } from 'node:os';
import { ORIGINS_FORM, parseOrigins } from '../../admission/origins.ts';
import { host, oneOf, readable, whole } from '../values/schemas.ts';
import type { SettingTable } from './setting.ts';

export interface ListeningSettings {
  readonly host: string;
  readonly port: number;
  readonly workers: number;
  readonly httpServer: 'auto' | 'uws' | 'node';
  readonly corsOrigins: string | undefined;
}

const MOST_WORKERS_BY_DEFAULT = 4;

const workersByDefault = ({ redisUrl }: Readonly<Record<string, unknown>>) =>
  redisUrl === undefined ? 1 : Math.min(availableParallelism(), MOST_WORKERS_BY_DEFAULT);

export const listeningSettings: SettingTable<ListeningSettings> = {
  host: {
    env: 'HOST',
    flag: '--host <address>',
    schema: host,
    fallback: '127.0.0.1',
    description: 'Address of the public port. `0.0.0.0`: all addresses.',
  },
  port: {
    env: 'PORT',
    flag: '--port <n>',
    schema: whole(0, 65_535),
    fallback: 8_080,
    description: 'Public port, for buyers. 0: any free port.',
  },
  workers: {
    env: 'WORKERS',
    flag: '--workers <n>',
    schema: whole(1, 64),
    fallback: workersByDefault,
    fallbackText: `1 without \`REDIS_URL\`, otherwise the number of cores, at most ${MOST_WORKERS_BY_DEFAULT}`,
    description: 'Threads that serve buyers. More than 1 needs `REDIS_URL`.',
  },
  httpServer: {
    env: 'HTTP_SERVER',
    flag: '--http-server <which>',
    schema: oneOf('auto', 'uws', 'node'),
    fallback: 'auto',
    description:
      'HTTP server on both ports. `uws`: uWebSockets.js. `node`: `node:http`. `auto`: uWebSockets.js if one of its binaries loads, otherwise `node:http`.',
  },
  corsOrigins: {
    env: 'CORS_ORIGINS',
    flag: '--cors-origins <list>',
    schema: readable(parseOrigins, ORIGINS_FORM),
    fallback: undefined,
    fallbackText: 'none',
    description:
      'Origins of the web pages that may call the public port from a browser, separated by commas: `https://a.example,https://b.example`. `*`: all, without cookies.',
    shared: 'value',
  },
};
