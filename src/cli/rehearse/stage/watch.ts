/** Reads, each second of the rush, what the nodes say in their metrics, and what Redis says of itself. */
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { redisUrls } from '../../../config/values/redis-urls.ts';
import type { SecretUrl } from '../../../config/values/secret.ts';
import { monotonicMs } from '../../../lib/monotonic.ts';
import { openRedisLook, type RedisReading } from '../../doctor/redis-replicas.ts';

const ANSWER_LIMIT_MS = 10_000;

export interface WatchedNode {
  readonly name: string;
  readonly opsUrl: string;
  readonly opsToken: string;
}

/** What one node's metrics say, all its workers together. */
export interface NodeReading {
  readonly node: string;
  /** Since the process began. */
  readonly cpuSeconds: number;
  readonly loopP99Ms: number;
  readonly lagOrders: number;
  /** Purchases that it has answered, of all sales. */
  readonly purchases: number;
}

/** One look at everything, at the end of a second of the crowd. */
export interface Look {
  /** Seconds since the crowd began. */
  readonly at: number;
  /** Those that answered. */
  readonly nodes: readonly NodeReading[];
  readonly unitsLeft: number | undefined;
  readonly redis: readonly RedisReading[];
}

export function readNode(node: string, text: string): NodeReading {
  const sum = (name: string) => samples(text, name).reduce((total, value) => total + value, 0);
  return {
    node,
    cpuSeconds: sum('process_cpu_seconds_total'),
    loopP99Ms: Math.max(0, ...samples(text, 'nodejs_eventloop_lag_p99_seconds')) * 1_000,
    lagOrders: sum('stockade_sync_lag_orders'),
    purchases: sum('stockade_request_duration_seconds_count'),
  };
}

/** The values of a metric, whatever its labels. */
function samples(text: string, name: string, label = ''): number[] {
  return text.split('\n').flatMap((line) => {
    const hasName = line.startsWith(`${name} `) || line.startsWith(`${name}{`);
    const value = Number(line.slice(line.lastIndexOf(' ') + 1));
    return hasName && line.includes(label) && Number.isFinite(value) ? [value] : [];
  });
}

export class Watch {
  readonly #nodes: readonly WatchedNode[];
  readonly #saleId: string;
  readonly #redis: ReturnType<typeof openRedisLook>[];
  readonly #agent = new Agent({ headersTimeout: ANSWER_LIMIT_MS, bodyTimeout: ANSWER_LIMIT_MS });
  readonly #looks: Look[] = [];
  #startAtMs = monotonicMs();

  constructor(nodes: readonly WatchedNode[], saleId: string, redisUrl: SecretUrl | undefined) {
    this.#nodes = nodes;
    this.#saleId = saleId;
    this.#redis = redisUrl === undefined ? [] : redisUrls(redisUrl.reveal()).map(openRedisLook);
  }

  get looks(): readonly Look[] {
    return this.#looks;
  }

  /** Looks before the crowd begins, and then each second until the signal. */
  async run(startAtMs: number, signal: AbortSignal): Promise<void> {
    this.#startAtMs = startAtMs;
    for (let at = 0; !signal.aborted; at = Math.max(at + 1, Math.ceil(this.#seconds()))) {
      const waitMs = Math.max(0, startAtMs + at * 1_000 - monotonicMs());
      await delay(waitMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await this.look();
    }
  }

  #seconds(): number {
    return (monotonicMs() - this.#startAtMs) / 1_000;
  }

  async look(): Promise<void> {
    const [texts, redis] = await Promise.all([
      Promise.all(this.#nodes.map((node) => this.#metrics(node))),
      Promise.all(this.#redis.map((one) => one.read().catch(() => undefined))),
    ]);
    const nodes = texts.flatMap((text, i) =>
      text === undefined ? [] : [readNode(this.#nodes[i]!.name, text)],
    );
    const left = texts.flatMap((text) => samples(text ?? '', 'stockade_units_left', `"${this.#saleId}"`));
    const look: Look = {
      // A node that is late with its answer reads its counters late.
      ...{ at: this.#seconds(), nodes, redis: redis.filter((reading) => reading !== undefined) },
      unitsLeft: left.length === 0 ? undefined : Math.min(...left),
    };
    this.#looks.push(look);
  }

  async #metrics({ opsUrl, opsToken }: WatchedNode): Promise<string | undefined> {
    try {
      const { statusCode, body } = await request(`${opsUrl}/metrics`, {
        dispatcher: this.#agent,
        headers: { authorization: `Bearer ${opsToken}` },
      });
      const text = await body.text();
      return statusCode === 200 ? text : undefined;
    } catch {
      return undefined;
    }
  }

  async close(): Promise<void> {
    for (const redis of this.#redis) redis.close();
    await this.#agent.destroy();
  }
}
