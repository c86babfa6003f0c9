/**
 * The probe port: health and readiness for kubelets and load balancers on other machines, without a token. It has no other
 * route, and its answers say neither why a process is not ready nor anything else about the shop.
 */
import { monotonicMs } from '../../lib/monotonic.ts';
import { Connections } from '../server/connections.ts';
import type { Observer } from '../server/exchange.ts';
import type { ListenOptions, OpenHttpServer } from '../server/http-server.ts';
import type { Listener } from '../server/listener.ts';
import { json, sentOften } from '../server/replies/reply.ts';
import { Router } from '../server/router.ts';
import { Traffic } from '../server/traffic.ts';
import { notReadyReply } from './not-ready.ts';

export interface ProbeHost extends Observer {
  /** The process has begun to stop. */
  isStopping(): boolean;
  /** Why the process can't do its work now; `undefined` if it can. Answers in bounded time. */
  notReady(): Promise<string | undefined>;
}

/** Everybody who reaches this port may ask as often as they like, so the stores are asked once in this time at most. */
const READINESS_KEPT_MS = 500;
/** Silent ones are closed after some ten seconds. They count towards the open files that a process needs beside its buyers. */
const MAX_PROBE_CONNECTIONS = 128;

const HEALTHY = sentOften(json(200, { status: 'ok' }));
const READY = sentOften(json(200, { status: 'ready' }));
const NOT_READY = sentOften(notReadyReply());

export function serveProbes(host: ProbeHost, open: OpenHttpServer, place: ListenOptions): Promise<Listener> {
  const isReady = keptFor(READINESS_KEPT_MS, async () => (await host.notReady()) === undefined);
  return new Router(open, host, new Traffic(new Connections(MAX_PROBE_CONNECTIONS)))
    .route('get', '/healthz', (exchange) => exchange.reply(HEALTHY))
    .route('get', '/readyz', async (exchange) => {
      const ready = !host.isStopping() && (await isReady());
      // The stop may have begun meanwhile.
      exchange.reply(ready && !host.isStopping() ? READY : NOT_READY);
    })
    .listen(place);
}

/** Calls `check` at most once in this time; callers in between get the same answer. */
function keptFor(keptMs: number, check: () => Promise<boolean>): () => Promise<boolean> {
  let askedMs = Number.NEGATIVE_INFINITY;
  let answer: Promise<boolean> | undefined;
  return () => {
    if (answer === undefined || monotonicMs() - askedMs >= keptMs) {
      askedMs = monotonicMs();
      answer = check();
    }
    return answer;
  };
}
