/** Listens to a sale, or to a place of its queue (`ID/place`), over a bare connection, and keeps what it is sent. */
import { connect, type Socket } from 'node:net';

export interface SeenEvent {
  readonly id: string | undefined;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: the test knows what it is.
  readonly data: any;
}

/** Only the newest events are kept, so that many listeners fit into one test. */
const KEPT = 20;

export class SaleListener implements Disposable {
  readonly socket: Socket;
  /** The status line and the headers; `''` until they are there. */
  head = '';
  events: SeenEvent[] = [];
  /** Of all events, also those that are not kept. */
  seen = 0;
  comments = 0;
  retryMs: number | undefined;
  isClosed = false;
  /** The answer came to its end; otherwise the connection was cut. */
  isWhole = false;
  #rest = '';

  /** @param localAddress that the other side sees; on Linux any of 127.0.0.0/8 */
  constructor(
    port: number,
    saleId: string,
    headers: Readonly<Record<string, string>> = {},
    localAddress = '127.0.0.1',
  ) {
    this.socket = connect({ port, host: '127.0.0.1', localAddress });
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.isClosed = true;
    });
    this.socket.setEncoding('utf8').on('data', (text) => this.#read(String(text)));
    const lines = Object.entries({ host: 'localhost', ...headers }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    this.socket.write(`GET /v1/sales/${saleId}/events HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  }

  get status(): number {
    return Number(this.head.split(' ')[1] ?? 0);
  }

  get last(): SeenEvent | undefined {
    return this.events.at(-1);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #read(text: string): void {
    this.#rest += text;
    if (this.head === '') {
      const end = this.#rest.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.head = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end);
    }
    this.isWhole = /\r\n0\r\n/.test(this.#rest);
    const blocks = this.#rest.split('\n\n');
    this.#rest = blocks.pop()!;
    for (const block of blocks) this.#block(block);
  }

  /** The lines between two blank ones. Those of the chunks' lengths are among them, and are passed over. */
  #block(block: string): void {
    const fields: Record<string, string> = {};
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) this.comments++;
      const [, name, value] = /^(id|event|data|retry): (.*)$/.exec(line) ?? [];
      if (name !== undefined) fields[name] = value!;
    }
    if (fields.retry !== undefined) this.retryMs = Number(fields.retry);
    if (fields.event === undefined) return;
    this.seen++;
    this.events.push({ id: fields.id, event: fields.event, data: JSON.parse(fields.data!) });
    if (this.events.length > KEPT) this.events.shift();
  }
}
