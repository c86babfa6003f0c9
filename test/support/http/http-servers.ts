import { chooseHttpServer } from '../../../src/node/process/http-server.ts';

const [major = 0] = process.versions.node.split('.').map(Number);
/** The newest version of Node for which the package of uWebSockets.js has binaries. Up to it, a failure to load fails the tests. */
const NEWEST_WITH_BINARIES = 22;

export type HttpServerKind = 'uws' | 'node';

/** The HTTP servers that load on this version of Node. */
export const HTTP_SERVERS: readonly HttpServerKind[] =
  major <= NEWEST_WITH_BINARIES || (await chooseHttpServer('auto')).kind === 'uws'
    ? ['uws', 'node']
    : ['node'];
