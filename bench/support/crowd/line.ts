import { connect, type Socket } from 'node:net';

export interface Answered {
  readonly code: string;
  readonly retryAfter: boolean;
  /** Empty if there was no answer. */
  readonly body: string;
}

const END_OF_HEAD = '\r\n\r\n';

/** One connection of a buyer: one request at a time, with as little work for reading answers as possible. */
export class Line {
  readonly #host: string;
  readonly #port: number;
  #socket: Socket | undefined;
  #text = '';
  /** The request under way, if it was sent on a connection that may have been idle for too long. */
  #repeatable: string | undefined;
  #done: ((answer: Answered) => void) | undefined;

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  /**
   * If the node closes the connection as idle just when a request is sent, the line connects again, once, as every HTTP client does.
   * @param done called with the answer, or with the code `broken` if there is still none
   */
  ask(request: string, done: (answer: Answered) => void): void {
    this.#done = done;
    this.#repeatable = this.#socket ? request : undefined;
    this.#socket ??= this.#open();
    this.#socket.write(request, 'latin1');
  }

  /** Connects before the first request. */
  open(): Promise<void> {
    this.#socket ??= this.#open();
    const socket = this.#socket;
    return new Promise((resolve) => {
      socket.once('connect', resolve);
      socket.once('close', resolve);
    });
  }

  close(): void {
    this.#socket?.destroy();
  }

  #open(): Socket {
    const socket = connect(this.#port, this.#host);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      if (this.#done && this.#repeatable !== undefined) this.ask(this.#repeatable, this.#done);
      else this.#end({ code: 'broken', retryAfter: false, body: '' });
    });
    socket.on('data', (bytes) => this.#read(bytes.toString('latin1')));
    return socket;
  }

  #read(text: string): void {
    this.#text += text;
    const headEnd = this.#text.indexOf(END_OF_HEAD);
    if (headEnd === -1) return;
    const head = this.#text.slice(0, headEnd).toLowerCase();
    const length = Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? 0);
    if (this.#text.length < headEnd + END_OF_HEAD.length + length) return;
    const body = this.#text.slice(headEnd + END_OF_HEAD.length);
    const code = /"(?:code|status)":"(\w+)"/.exec(body)?.[1] ?? head.slice(9, 12);
    this.#end({ code, retryAfter: head.includes('\r\nretry-after: '), body });
  }

  #end(answer: Answered): void {
    const done = this.#done;
    this.#done = undefined;
    this.#text = '';
    done?.(answer);
  }
}
