/**
 * A connection on which a test sends exactly the bytes it wants: half requests, several at once, headers that no proper client
 * would send.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Answer, readAnswer } from '../nodes/node.ts';

export class RawConnection implements Disposable {
  /** Resolves when the connection is closed, by either end. */
  readonly closed: Promise<void>;
  /** The connection's error, such as `ECONNRESET`; none after a normal close. */
  failure: string | undefined;
  readonly #socket: Socket;
  #received = Buffer.alloc(0);
  #isClosed = false;
  #isStuck = false;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#isClosed = true;
        this.#wake();
        resolve();
      });
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.failure = error.code ?? error.message;
    });
    socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#wake();
    });
  }

  /** @param localAddress that the other side sees; on Linux any of 127.0.0.0/8 */
  static async open(url: string, { localAddress }: { localAddress?: string } = {}): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect({
      port: Number(port),
      host: hostname,
      ...(localAddress !== undefined && { localAddress }),
    });
    const connection = new RawConnection(socket);
    await once(socket, 'connect');
    return connection;
  }

  /** Text is sent as Latin-1: one byte for each character. Resolves when the bytes have left this process. */
  send(bytes: string | Buffer): Promise<void> {
    const data = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
    return new Promise((resolve) => this.#socket.write(data, () => resolve()));
  }

  /** Stops reading, so that the other side has to buffer what it sends. */
  stopReading(): void {
    this.#socket.pause();
  }

  readOn(): void {
    this.#socket.resume();
  }

  /** Whether the connection is closed, or the other side no longer reads what is sent. */
  get isStuck(): boolean {
    return this.#isStuck || this.#isClosed;
  }

  /** As `send`, but gives up `limitMs` after the other side has stopped reading. */
  async sendOrGiveUp(bytes: string | Buffer, limitMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.#isStuck = true;
        resolve();
      }, limitMs);
    });
    await Promise.race([this.send(bytes), this.closed, late]);
    clearTimeout(timer);
  }

  /** The next answer; `undefined` if the connection is closed without one. Its body must have a `Content-Length`. */
  async answer({ toHead = false } = {}): Promise<Answer | undefined> {
    for (;;) {
      const answer = this.#takeAnswer(toHead);
      if (answer || this.#isClosed) return answer;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Bytes that have arrived and were not read as an answer. */
  get rest(): string {
    return this.#received.toString('latin1');
  }

  /** Ends sending; the other side sees the end of the stream. */
  close(): void {
    this.#socket.destroy();
  }

  /** Breaks the connection; the other side sees a reset. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  #takeAnswer(toHead: boolean): Answer | undefined {
    const end = this.#received.indexOf('\r\n\r\n');
    if (end === -1) return undefined;
    const [statusLine = '', ...lines] = this.#received.toString('latin1', 0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const length = toHead ? 0 : Number(headers['content-length'] ?? 0);
    const bodyAt = end + 4;
    if (this.#received.length < bodyAt + length) return undefined;
    const body = this.#received.toString('utf8', bodyAt, bodyAt + length);
    this.#received = this.#received.subarray(bodyAt + length);
    return readAnswer(Number(statusLine.split(' ')[1]), headers, body);
  }
}

/** A request as bytes; `Host` is added, and `Content-Length` if there is a body. */
export function rawRequest(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): string {
  const all = {
    Host: 'localhost',
    ...headers,
    ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body, 'latin1')) }),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`;
}
