/**
 * A link over a bad network to a server on 127.0.0.1: every piece of data arrives late, at times much later, and connections are cut
 * now and then.
 *
 * The kernel's own tool for this, the queueing discipline `netem`, is missing in many kernels (those of small virtual machines among
 * them), so TCP's view of such a network is played here: bytes are never lost or reordered within a connection. A lost packet shows
 * as a pause until it is sent again.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** TCP sends a lost packet again after this time at the earliest (Linux). */
const RESEND_MS = 200;
/** A segment of TCP: a larger piece of data is several packets. */
const PACKET_BYTES = 1_448;

export interface Weather {
  /** One way, on average. */
  readonly delayMs: number;
  /** The delay differs by this much at most, in both directions. */
  readonly jitterMs: number;
  /** The share of packets that are lost and sent again, from 0 to 1. */
  readonly lossShare: number;
}

export class BadLink implements AsyncDisposable {
  /** What the network has done so far. */
  readonly counts = { pieces: 0, lost: 0, cuts: 0 };
  /** The share of pieces of data at which the connection is cut, from 0 to 1. */
  cutShare = 0;
  readonly #listener: Server;
  readonly #sockets = new Set<Socket>();
  readonly #weather: Weather;
  readonly #random: () => number;

  private constructor(targetPort: number, weather: Weather, random: () => number) {
    this.#weather = weather;
    this.#random = random;
    this.#listener = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
      const server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(from);
        from.on('error', () => {});
        from.on('close', () => {
          this.#sockets.delete(from);
          to.destroy();
        });
        void this.#carry(from, to);
      }
    });
  }

  /** @param host the address of this machine at which the link begins */
  static async start(
    targetPort: number,
    host: string,
    weather: Weather,
    random: () => number,
  ): Promise<BadLink> {
    const link = new BadLink(targetPort, weather, random);
    await new Promise<void>((resolve, reject) => {
      link.#listener.once('error', reject);
      link.#listener.listen(0, host, resolve);
    });
    return link;
  }

  /** The url with the link's address. */
  through(url: string): string {
    const { address, port } = this.#listener.address() as AddressInfo;
    const rerouted = new URL(url);
    rerouted.host = `${address}:${port}`;
    return rerouted.href;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#listener.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Pieces are under way at the same time and arrive in order. */
  async #carry(from: Socket, to: Socket): Promise<void> {
    let lastArrival: Promise<unknown> = Promise.resolve();
    from.on('data', (bytes) => {
      this.counts.pieces++;
      if (this.#happens(this.cutShare)) {
        this.counts.cuts++;
        from.destroy();
        return;
      }
      lastArrival = Promise.all([
        lastArrival,
        delay(this.#delayOf(bytes.length), undefined, { ref: false }),
      ]).then(() => to.write(bytes));
    });
    from.on('end', () => void lastArrival.then(() => to.end()));
  }

  #delayOf(bytes: number): number {
    const { delayMs, jitterMs, lossShare } = this.#weather;
    let ms = delayMs + jitterMs * (2 * this.#random() - 1);
    for (let sent = 0; sent < bytes; sent += PACKET_BYTES) {
      if (!this.#happens(lossShare)) continue;
      this.counts.lost++;
      ms += RESEND_MS;
    }
    return ms;
  }

  #happens(share: number): boolean {
    return this.#random() < share;
  }
}
