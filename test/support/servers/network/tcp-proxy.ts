/**
 * A network that fails on demand, between a client and a server under test on 127.0.0.1.
 *
 * It passes bytes on until it is told to lose replies or requests, to hold requests back, to cut clients or to refuse them.
 * Predicates see one whole request at a time (a Redis command, a Postgres query). Every fault has a promise or a counter, so that
 * tests wait for events and never for time to pass.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { type Loss, LossRule, type Predicate } from './loss-rule.ts';
import { type Fate, ProxiedConnection } from './proxied-connection.ts';

/** What the proxy has done so far. */
export interface ProxyCounts {
  connections: number;
  refused: number;
  /** Requests at which a hold has begun, without those that wait behind them. */
  held: number;
  lostReplies: number;
  lostRequests: number;
  /** Clients cut by `cutAll`. */
  cut: number;
}

export type { Loss, Predicate };

export interface Hold {
  /** Resolves when the first request is held back. */
  readonly held: Promise<void>;
}

const anyRequest: Predicate = () => true;

export class TcpProxy implements AsyncDisposable {
  readonly counts: ProxyCounts = {
    connections: 0,
    refused: 0,
    held: 0,
    lostReplies: 0,
    lostRequests: 0,
    cut: 0,
  };
  #targetPort: number;
  readonly #listener: Server;
  readonly #connections = new Set<ProxiedConnection>();
  #losses: LossRule[] = [];
  #hold: { predicate: Predicate; began: () => void } | undefined;
  #refusing = false;

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    await new Promise<void>((resolve, reject) => {
      proxy.#listener.once('error', reject);
      proxy.#listener.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** Whether the server sees one of its clients at this port. */
  leadsTo(portToServer: number): boolean {
    return [...this.#connections].some((connection) => connection.portToServer === portToServer);
  }

  /** The url with the proxy's address. */
  through(url: string): string {
    const rerouted = new URL(url);
    rerouted.port = String(this.port);
    return rerouted.href;
  }

  /**
   * The next matching requests reach the server and are executed, but their clients get no reply: they are cut off after the server
   * has answered.
   */
  loseReplies(predicate: Predicate = anyRequest, { times = 1 } = {}): Loss {
    return this.#lose('reply', predicate, times);
  }

  /** The next matching requests never reach the server, and their clients are cut off. */
  loseRequests(predicate: Predicate = anyRequest, { times = 1 } = {}): Loss {
    return this.#lose('request', predicate, times);
  }

  /**
   * Holds back matching requests, and all that follow on their connections, until `release`, even if the client ends. Replies still
   * go to the client.
   */
  hold(predicate: Predicate = anyRequest): Hold {
    if (this.#hold) throw new Error('already holding');
    const held = new Promise<void>((began) => {
      this.#hold = { predicate, began };
    });
    return { held };
  }

  /**
   * Delivers what was held, in order. Resolves when the sockets to the server have it; for clients that have gone meanwhile, when
   * the server has executed it and closed the connection.
   */
  async release(): Promise<void> {
    this.#hold = undefined;
    const orphans = [...this.#connections].filter((connection) => connection.clientHasGone);
    for (const connection of this.#connections) connection.release();
    await Promise.all(orphans.map((connection) => connection.over));
  }

  /** Cuts off all clients. What they have sent still reaches the server, at once or when it is released. */
  cutAll(): void {
    for (const connection of this.#connections) {
      if (connection.cut()) this.counts.cut += 1;
    }
  }

  /** Simulates a failover: new connections reach another server, and all existing ones are cut. */
  failOver(targetPort: number): void {
    this.#targetPort = targetPort;
    this.cutAll();
  }

  /** While refusing, new connections are closed at once; existing ones go on. */
  refuse(refusing: boolean): void {
    this.#refusing = refusing;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#listener.close(resolve));
    for (const connection of this.#connections) connection.destroy();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #accept(client: Socket): void {
    client.on('error', () => {});
    if (this.#refusing) {
      this.counts.refused += 1;
      client.destroy();
      return;
    }
    this.counts.connections += 1;
    const connection = new ProxiedConnection(client, this.#targetPort, (request) => this.#decide(request));
    this.#connections.add(connection);
    connection.over.then(() => this.#connections.delete(connection));
  }

  #lose(what: LossRule['what'], predicate: Predicate, times: number): Loss {
    const rule = new LossRule(what, predicate, times);
    this.#losses.push(rule);
    return rule;
  }

  #decide(request: Buffer): Fate {
    if (this.#hold?.predicate(request)) {
      this.counts.held += 1;
      this.#hold.began();
      return 'hold';
    }
    this.#losses = this.#losses.filter((rule) => !rule.isOver);
    const rule = this.#losses.find((candidate) => candidate.claim(request));
    if (!rule) return 'pass';
    if (rule.what === 'request') {
      this.counts.lostRequests += 1;
      rule.confirm();
      return 'lose-request';
    }
    return {
      lost: () => {
        this.counts.lostReplies += 1;
        rule.confirm();
      },
      failed: () => rule.giveBack(),
    };
  }
}
