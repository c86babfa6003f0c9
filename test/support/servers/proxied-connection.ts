/**
 * One client's way through the proxy: a socket to the client, one to the server, and between them the
 * requests that wait.
 *
 *   passing ──the proxy holds this request──> holding ──released──> passing
 *   passing ──the reply to this request is to be lost──> draining ──server closed──> over
 *   passing ──this request is to be lost──> over
 *   passing, holding ──the client has gone──> the same, with nobody to answer to; over once all is delivered
 *
 * How a reply is lost, and the command is yet known to be executed: the request is sent, then our side of
 * the server's connection is closed. A server works off what it has read before it takes note of the end, so
 * when it has answered *and* closed, the request has been executed. Only then is the client cut. Requests
 * behind it never leave the proxy; replies still on their way to earlier ones are lost with it.
 */
import { connect, type Socket } from 'node:net';
import { RequestFramer } from './request-framer.ts';

/** A client is no longer read from while this much of what it sent is kept back. */
const waitingBytesMax = 64 * 1024 * 1024;

export type Fate = 'pass' | 'hold' | 'lose-request' | LostReply;

/** What to call when the fate of a reply that was to be lost is known. */
export interface LostReply {
  /** The server has executed the request, its reply is gone, the client is cut. */
  lost(): void;
  /** The server went without an answer: nobody knows what it did. */
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
  /** Something was lost here: no more requests go out, and no replies come back. */
  #severed = false;
  #losing: (LostReply & { swallowedBytes: number }) | undefined;

  /** decide is asked once for each request, when its turn has come. */
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

  /** The client sends no more: it has closed its side, or has been cut. */
  get clientHasGone(): boolean {
    return this.#clientEnded || this.#client.destroyed;
  }

  /** Cuts the client off, if it is there. What it has sent still reaches the server. */
  cut(): boolean {
    if (this.#client.destroyed) return false;
    this.#client.destroy();
    return true;
  }

  /** Delivers what was held, as far as the proxy now lets it. */
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
      // Closing our side as well makes the socket close, which settles a reply that is being lost.
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
