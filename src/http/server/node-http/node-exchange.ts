import type { IncomingMessage, ServerResponse } from 'node:http';
import { Exchange, type Port } from '../exchange.ts';
import type { HttpRequest } from '../http-request.ts';
import type { Reply } from '../replies/reply.ts';
import type { NodeConnection, UnderWay } from './node-connection.ts';

const NO_BYTES = new Uint8Array(0);
const CLOSING = ['connection', 'close'];

/** A request and its answer over `node:http`. */
export class NodeExchange extends Exchange implements UnderWay {
  readonly #connection: NodeConnection;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  #isWriting = false;

  constructor(connection: NodeConnection, message: IncomingMessage, response: ServerResponse, port: Port) {
    super(port, message.method === 'HEAD');
    this.#connection = connection;
    this.#message = message;
    this.#response = response;
    connection.underWay = this;
  }

  get peer(): Uint8Array {
    return this.#connection.peer;
  }

  get isBeingHandled(): boolean {
    return this.#message.complete && !this.#isWriting;
  }

  aborted(): void {
    this.end();
  }

  /** There is one length, in digits: Node's parser refuses all others. */
  protected receive(request: HttpRequest): void {
    let missing = Number(request.getHeader('content-length'));
    if (missing === 0) this.received(NO_BYTES, true);
    this.#message.on('data', (chunk: Buffer) => {
      missing -= chunk.length;
      this.received(chunk, missing === 0);
    });
  }

  protected write(
    { status, head, body, bytes, isBodiless }: Reply,
    isLast: boolean,
    isLong: boolean,
  ): boolean {
    this.#isWriting = true;
    const response = this.#response;
    const length = isBodiless ? [] : ['content-length', String(Buffer.byteLength(body))];
    const closing = isLast || this.traffic.draining ? CLOSING : [];
    response.writeHead(status, head.reason, [
      ...head.fields,
      ...(this.moreLines?.fields ?? []),
      ...length,
      ...closing,
    ]);
    // The bytes of a long answer to many clients are in memory once, however slowly they read.
    response.end(isLong && bytes ? bytes : body);
    const isTaken = this.#connection.isAllTaken;
    if (isLong && !isTaken) response.once('finish', () => this.end());
    return isTaken;
  }

  protected begin({ status, head }: Omit<Reply, 'body'>): void {
    this.#response.writeHead(status, head.reason, [
      ...head.fields,
      ...(this.moreLines?.fields ?? []),
      ...CLOSING,
    ]);
    this.#response.on('drain', () => {
      this.#isWriting = false;
      this.hasRoom();
    });
  }

  protected writePiece(piece: string): boolean {
    const hasRoom = this.#response.write(piece);
    this.#isWriting = !hasRoom;
    return hasRoom;
  }

  protected pushPiece(piece: Uint8Array): boolean {
    if (!this.#connection.isAllTaken) return false;
    this.#response.write(piece);
    return true;
  }

  protected endPieces(): void {
    this.#response.end();
  }

  protected close(): void {
    this.#connection.close();
  }

  protected override end(): void {
    if (this.#connection.underWay === this) this.#connection.underWay = undefined;
    super.end();
  }
}
