/**
 * The HTTP server under test. `HTTP_SERVER` in the environment of the run names it, both for ports that a test opens in its own
 * process and for nodes that it starts: every HTTP test runs with both servers.
 */
import type { Config } from '../../../src/config/config.ts';
import { chooseHttpServer } from '../../../src/node/process/http-server.ts';

const { open, kind } = await chooseHttpServer((process.env.HTTP_SERVER ?? 'auto') as Config['httpServer']);

export { kind as httpServerKind, open as openHttpServer };

/** Any free port of the loopback. */
export const ANY_PORT = { host: '127.0.0.1', port: 0, isShared: false };
