import { connect, type Socket } from 'node:net';

export interface Answered {
  readonly code: string;
  readonly retryAfter: boolean;
}

const END_OF_HEAD = '\r\n\r\n';

/** One connection of a buyer: a request at a time, answers read with as little work as can be. */
export class Line {
  readonly #host: string;
  readonly #port: number;
  #socket: Socket | undefined;
  #text = '';
  /** What was asked on a connection that may have been idle for too long. */
  #again: string | undefined;
  #done: ((answer: Answered) => void) | undefined;

  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  /**
   * A connection that the node closes as idle while it is asked is made anew, once, as every client of HTTP does.
   * @param done told of the answer, or of code `broken` if there is none all the same
   */
  ask(request: string, done: (answer: Answered) => void): void {
    this.#done = done;
    this.#again = this.#socket ? request : undefined;
    this.#socket ??= this.#open();
    this.#socket.write(request, 'latin1');
  }

  /** Connects before there is something to ask. */
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
      if (this.#done && this.#again !== undefined) this.ask(this.#again, this.#done);
      else this.#end({ code: 'broken', retryAfter: false });
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
    this.#end({ code, retryAfter: head.includes('\r\nretry-after: ') });
  }

  #end(answer: Answered): void {
    const done = this.#done;
    this.#done = undefined;
    this.#text = '';
    done?.(answer);
  }
}
