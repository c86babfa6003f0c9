import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { opsTokenFile } from '../../src/config/ops-token.ts';
import type { VerifyReport } from '../../src/operations/sale-operations.ts';
import { BenchFailure } from './failure.ts';
import { backlog, type NodeFigures, readFigures } from './metrics-text.ts';
import { NodeProgram } from './node-program.ts';
import { settled, untilFigures } from './settled.ts';
import type { StoreServers } from './stores.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const DATA_DIR = 'data';
const CALL_TIMEOUT_MS = 60_000;
const SOLD_OUT_LIMIT_MS = 10_000;

interface Ready {
  readonly publicUrl: string;
  readonly opsUrl: string;
}

export interface BenchSale {
  readonly id: string;
  readonly stock: number;
  readonly segments: number;
  readonly startsAt?: string;
  readonly payWithinSeconds?: number;
  readonly queue?: 'fifo' | 'draw';
  readonly offerSeconds?: number;
  readonly presenceSeconds?: number;
  readonly maxWaiting?: number;
}

/** Settings of the node by the bench; the rest have the product's defaults. */
export interface NodeSettings {
  readonly workers: number;
  readonly eventsStreamMax: number;
  readonly eventsYieldMs: number;
  /** Without stores: stock in its memory, orders in PGlite. */
  readonly embedded?: boolean;
  /** The urls of its stores, if they differ from those of `stores`. */
  readonly redisUrl?: string;
  readonly databaseUrl?: string;
  /** Further flags of `stockade serve`, without their dashes. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Further environment variables, for secrets. */
  readonly env?: Readonly<Record<string, string>>;
  /** The `cli/main.js` of another build than this one. */
  readonly main?: string;
}

/** The product as it is shipped: `stockade serve` in a process of its own, used only through its two ports. */
export class StockadeNode implements AsyncDisposable {
  readonly #program: NodeProgram<Ready>;
  readonly #token: string;
  readonly #hasStream: boolean;

  private constructor(program: NodeProgram<Ready>, token: string, hasStream: boolean) {
    this.#program = program;
    this.#token = token;
    this.#hasStream = hasStream;
  }

  static async start(
    { redis, postgres }: StoreServers,
    {
      workers,
      eventsStreamMax,
      eventsYieldMs,
      embedded,
      redisUrl,
      databaseUrl,
      flags: more,
      env,
      main = MAIN,
    }: NodeSettings,
  ): Promise<StockadeNode> {
    if (!existsSync(main)) throw new BenchFailure(`${main} is missing: run \`npm run build\` first`);
    const flags = {
      ...(!embedded && {
        'redis-url': redisUrl ?? redis.url,
        'database-url': databaseUrl ?? (await postgres.createDatabase('bench')),
      }),
      // Each database needs its own place in Redis, which a prefix is.
      'key-prefix': `bench-${randomBytes(6).toString('hex')}:`,
      workers: String(workers),
      'events-stream-max': String(eventsStreamMax),
      'events-yield-ms': String(eventsYieldMs),
      port: '0',
      'ops-port': '0',
      'data-dir': DATA_DIR,
      // As behind a gateway: a node without one checks two more headers of each request.
      'trust-buyer-header': '1',
      'log-level': 'warn',
      ...more,
    };
    const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    const program = await NodeProgram.start<Ready>('stockade', [main, 'serve', '--json', ...words], env);
    const token = program.read(opsTokenFile({ dataDir: DATA_DIR })).trim();
    // The stream is in Redis.
    return new StockadeNode(program, token, eventsStreamMax > 0 && !embedded);
  }

  get publicUrl(): string {
    return this.#program.announcement.publicUrl;
  }

  get opsUrl(): string {
    return this.#program.announcement.opsUrl;
  }

  get opsToken(): string {
    return this.#token;
  }

  get pid(): number {
    return this.#program.pid;
  }

  ordersUrl(saleId: string): string {
    return `${this.publicUrl}/v1/sales/${saleId}/orders`;
  }

  cpuSeconds(): number {
    return this.#program.cpuSeconds();
  }

  lastWords(): Promise<string> {
    return this.#program.lastWords();
  }

  async createSale(sale: BenchSale): Promise<void> {
    await this.#ops('POST', '/v1/sales', { ...sale, perBuyerLimit: 1 });
  }

  async verify(saleId: string): Promise<VerifyReport> {
    return (await this.#ops('POST', `/v1/sales/${saleId}/verify`)).json() as Promise<VerifyReport>;
  }

  /** @throws BenchFailure if the sale does not add up, or if Postgres has refused an order */
  async assertVerified(saleId: string): Promise<void> {
    const report = await this.verify(saleId);
    if (report.ok && report.rejectedOrders === 0) return;
    throw new BenchFailure(`verify of sale ${saleId} found a difference: ${JSON.stringify(report)}`);
  }

  async figures(): Promise<NodeFigures> {
    return readFigures(await this.metrics());
  }

  /** The metrics in Prometheus' text format. */
  async metrics(): Promise<string> {
    return (await this.#ops('GET', '/metrics')).text();
  }

  async closeSale(saleId: string): Promise<void> {
    await this.#ops('PATCH', `/v1/sales/${saleId}`, { action: 'close' });
  }

  /** Sells a sale's last units one by one, and returns when a purchase is answered `sold_out`. */
  async sellOut(saleId: string): Promise<void> {
    const deadline = Date.now() + SOLD_OUT_LIMIT_MS;
    for (let buyer = 1; Date.now() < deadline; buyer++) {
      const answer = await fetch(this.ordersUrl(saleId), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-buyer-id': `first-${buyer}` },
        body: '{"quantity":1}',
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      });
      const { code } = (await answer.json()) as { code?: string };
      if (code === 'sold_out') return;
      if (answer.status !== 201) throw new BenchFailure(`the first buyers of ${saleId} got ${answer.status}`);
    }
    throw new BenchFailure(`${saleId} was not sold out within ${SOLD_OUT_LIMIT_MS} ms`);
  }

  /** See `settled`. */
  settled(): Promise<NodeFigures> {
    return settled(() => this.figures(), this.#hasStream);
  }

  /** Returns when sync has committed as many orders as answers have named. */
  drained(): Promise<NodeFigures> {
    return untilFigures(
      () => this.figures(),
      'the order logs are drained',
      (now) => backlog(now) === 0,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
  }

  async #ops(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<Response> {
    const answer = await fetch(`${this.opsUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    if (answer.ok) return answer;
    throw new BenchFailure(`${method} ${path} was answered ${answer.status}: ${await answer.text()}`);
  }
}
