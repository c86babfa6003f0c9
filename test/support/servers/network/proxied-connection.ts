/**
 * One client's connection through the proxy: a socket to the client, one to the server, and the requests that wait between them.
 *
 *   passing ──the proxy holds this request──> holding ──released──> passing
 *   passing ──the reply to this request is to be lost──> draining ──server closed──> over
 *   passing ──this request is to be lost──> over
 *   passing, holding ──the client has gone──> the same, without replies; over once all is delivered
 *
 * A reply is lost in such a way that the command is known to be executed. The proxy sends the request, then closes its side of the
 * connection to the server. A server executes what it has read before it notices the end, so when it has answered *and* closed,
 * the request has been executed. Only then does the proxy cut the client. Requests behind it never leave the proxy; replies on
 * their way to earlier ones are lost with it.
 */
import { connect, type Socket } from 'node:net';
import { RequestFramer } from './request-framer.ts';

/** Above this size of held requests, the proxy stops reading from the client. */
const waitingBytesMax = 64 * 1024 * 1024;

export type Fate = 'pass' | 'hold' | 'lose-request' | LostReply;

/** Callbacks for a reply that is to be lost. */
export interface LostReply {
  /** The server has executed the request, its reply is lost, the client is cut. */
  lost(): void;
  /** The server closed without an answer, so it is unknown whether the request was executed. */
  failed(): void;
}

export class ProxiedConnection {
  /** Resolves when both sockets are closed. */
  readonly over: Promise<unknown>;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #decide: (request: Buffer) => Fate;
  readonly #framer = new RequestFramer();
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #holding = false;
  #clientEnded = false;
  /** Something was lost here: no further request or reply passes. */
  #severed = false;
  #losing: (LostReply & { swallowedBytes: number }) | undefined;

  /** @param decide called once for each request, when its turn has come */
  constructor(client: Socket, targetPort: number, decide: (request: Buffer) => Fate) {
    this.#client = client;
    this.#decide = decide;
    this.#server = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    this.over = Promise.all(
      [client, this.#server].map((socket) => new Promise((r) => socket.once('close', r))),
    );
    this.#listenToClient();
    this.#listenToServer();
  }

  /** The client sends nothing more: it has closed its side, or was cut. */
  get clientHasGone(): boolean {
    return this.#clientEnded || this.#client.destroyed;
  }

  /** The port from which the server sees this connection; `undefined` before it is connected, and afterwards. */
  get portToServer(): number | undefined {
    return this.#server.localPort;
  }

  /** Cuts the client off, if it is connected. What it has sent still reaches the server. */
  cut(): boolean {
    if (this.#client.destroyed) return false;
    this.#client.destroy();
    return true;
  }

  /** Delivers what was held, as far as the proxy allows it now. */
  release(): void {
    this.#holding = false;
    this.#deliver();
  }

  destroy(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  #listenToClient(): void {
    const ended = (): void => {
      if (this.#clientEnded) return;
      this.#clientEnded = true;
      this.#enqueue(this.#framer.flush());
      this.#deliver();
    };
    this.#client.on('data', (chunk) => {
      for (const request of this.#framer.push(chunk)) this.#enqueue(request);
      this.#deliver();
    });
    this.#client.on('end', ended);
    this.#client.on('close', ended);
    this.#client.on('drain', () => this.#server.resume());
    this.#client.on('error', () => {});
  }

  #listenToServer(): void {
    this.#server.on('data', (chunk) => {
      if (this.#losing) this.#losing.swallowedBytes += chunk.length;
      else if (this.#client.writable && !this.#client.write(chunk)) this.#server.pause();
    });
    this.#server.on('end', () => {
      // Closing this side too closes the socket, which settles a reply that is being lost.
      this.#server.end();
      if (!this.#losing) this.#client.end();
    });
    this.#server.on('drain', () => this.#readOrPauseClient());
    this.#server.on('error', () => this.#client.destroy());
    this.#server.on('close', () => this.#settleLoss());
    this.#client.on('close', () => this.#server.resume());
  }

  #enqueue(request: Buffer): void {
    if (request.length === 0 || this.#severed) return;
    this.#waiting.push(request);
    this.#waitingBytes += request.length;
  }

  #deliver(): void {
    while (this.#waiting[0] && !this.#holding && !this.#severed) this.#deliverOne(this.#waiting[0]);
    if (this.#clientEnded && this.#waiting.length === 0) this.#server.end();
    this.#readOrPauseClient();
  }

  #deliverOne(request: Buffer): void {
    const fate = this.#decide(request);
    if (fate === 'hold') {
      this.#holding = true;
      return;
    }
    this.#waiting.shift();
    this.#waitingBytes -= request.length;
    if (fate !== 'lose-request') this.#server.write(request);
    if (fate !== 'pass') this.#sever(fate);
  }

  #sever(fate: 'lose-request' | LostReply): void {
    this.#severed = true;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#server.end();
    if (fate === 'lose-request') this.#client.destroy();
    else this.#losing = Object.assign(fate, { swallowedBytes: 0 });
  }

  #settleLoss(): void {
    if (!this.#losing) return;
    this.#client.destroy();
    if (this.#losing.swallowedBytes > 0) this.#losing.lost();
    else this.#losing.failed();
  }

  #readOrPauseClient(): void {
    const full = this.#waitingBytes > waitingBytesMax || this.#server.writableNeedDrain;
    if (full && !this.#severed) this.#client.pause();
    else this.#client.resume();
  }
}
