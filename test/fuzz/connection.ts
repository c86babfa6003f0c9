/** A raw connection of the fuzzer: bytes are sent as they are, and answers are parsed later. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type ReadAnswer, takeAnswer } from './wire.ts';

/** The pause between two pieces, long enough that the server does not read them as one. */
const PIECE_MS = 1;

export class FuzzConnection implements Disposable {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #isClosed = false;
  #changed: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#changed();
    });
    socket.on('close', () => {
      this.#isClosed = true;
      this.#changed();
    });
  }

  /** @throws if no server listens there */
  static async open(port: number): Promise<FuzzConnection> {
    const socket = connect(port, '127.0.0.1');
    const connection = new FuzzConnection(socket);
    await once(socket, 'connect');
    return connection;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** @param cuts the positions at which the sender pauses */
  async send(bytes: Buffer, cuts: readonly number[]): Promise<void> {
    let at = 0;
    for (const cut of [...cuts, bytes.length]) {
      if (this.#isClosed) return;
      if (at > 0) await delay(PIECE_MS);
      this.#socket.write(bytes.subarray(at, cut));
      at = cut;
    }
  }

  /** The next answer; or why there is none: the connection is closed, or the time is over. */
  async answer(limitMs: number, toHead: boolean): Promise<ReadAnswer | 'closed' | 'silence'> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const taken = takeAnswer(this.#received, toHead);
      if (taken && (this.#isClosed || taken.answer.headers.has('content-length') || toHead)) {
        this.#received = taken.rest;
        return taken.answer;
      }
      if (this.#isClosed) return 'closed';
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return 'silence';
      await this.#change(leftMs);
    }
  }

  /** The other side sees the end of the stream. */
  end(): void {
    this.#socket.destroy();
  }

  /** The other side sees the connection break. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #change(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#changed = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
