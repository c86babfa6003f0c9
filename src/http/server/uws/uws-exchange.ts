/**
 * A request and its answer over uWebSockets.js. That library has rules; breaking one ends the process or corrupts memory.
 * They are kept here and nowhere else: an abort handler is always set; nothing is read from the request after the handler has
 * returned; a response is written once, and not after an abort; writes outside the handler are corked.
 */
import type { HttpResponse } from 'uWebSockets.js';
import { Exchange, type Port } from '../exchange.ts';
import type { Head, Reply } from '../replies/reply.ts';

export class UwsExchange extends Exchange {
  /** The exchange that writes now. `cork` needs a function, and this way one function serves all exchanges. */
  static #writing: UwsExchange;
  static readonly #writeNow = () => UwsExchange.#writing.#write();
  readonly #response: HttpResponse;
  #reply!: Reply;
  #isLast = false;
  #isLong = false;
  #isTaken = false;

  constructor(response: HttpResponse, port: Port, isHead = false) {
    super(port, isHead);
    this.#response = response;
    response.onAborted(() => this.end());
  }

  get peer(): Uint8Array {
    return new Uint8Array(this.#response.getRemoteAddress());
  }

  protected receive(): void {
    this.#response.onData((chunk, isLast) => this.received(new Uint8Array(chunk), isLast));
  }

  protected write(reply: Reply, isLast: boolean, isLong: boolean): boolean {
    this.#reply = reply;
    this.#isLast = isLast;
    this.#isLong = isLong;
    UwsExchange.#writing = this;
    this.#response.cork(UwsExchange.#writeNow);
    return this.#isTaken;
  }

  protected begin({ head }: Omit<Reply, 'body'>): void {
    const response = this.#response;
    response.onWritable(() => {
      this.hasRoom();
      return true;
    });
    response.cork(() => response.writeStatus(this.#textOf(head) + CLOSING));
  }

  protected writePiece(piece: string | Uint8Array): boolean {
    let hasRoom = true;
    this.#response.cork(() => {
      hasRoom = this.#response.write(piece);
    });
    return hasRoom;
  }

  /** uWebSockets.js keeps what the client has no room for. It tells of that when the next piece is written. */
  protected pushPiece(piece: Uint8Array): boolean {
    return this.writePiece(piece);
  }

  /**
   * The client closes the connection, as the head has told it. If uWebSockets.js were to close it, it would first write a head
   * field of its own, behind the pieces.
   */
  protected endPieces(): void {
    this.#response.cork(() => this.#response.end());
  }

  protected close(): void {
    this.#response.close();
  }

  #write(): void {
    const { head, body, bytes, isBodiless } = this.#reply;
    const hasBody = !this.isHead && !isBodiless;
    this.#isTaken = true;
    if (this.#isLast)
      this.#response.writeStatus(this.#textOf(head) + closingRest(hasBody ? body : undefined));
    else if (isBodiless) this.#isTaken = this.#writeHead(this.#textOf(head));
    else if (this.#isLong) this.#isTaken = this.#writeLong(this.#textOf(head), bytes ?? Buffer.from(body));
    else {
      const response = this.#response.writeStatus(this.moreLines ? this.#textOf(head) : head.bytes);
      if (this.traffic.draining) response.end(body, true);
      else this.#isTaken = response.tryEnd(bytes ?? body, WHOLE)[1];
    }
  }

  #textOf({ text }: Head): string {
    return this.moreLines ? text + this.moreLines.text : text;
  }

  /** Writes as much as the client can take now, and the rest when there is room. */
  #writeLong(head: string, body: Uint8Array): boolean {
    const response = this.#response.writeStatus(this.traffic.draining ? head + CLOSING : head);
    if (response.tryEnd(body, body.length)[1]) return true;
    response.onWritable((offset) => {
      const [isTaken, isDone] = response.tryEnd(body.subarray(offset), body.length);
      if (isDone) this.end();
      return isTaken;
    });
    return false;
  }

  /**
   * Writes an answer without a body. For such an answer uWebSockets.js does not tell whether the client has taken the earlier
   * ones, so some of them, nobody knows which, close the connection: otherwise a client that reads nothing could fill the memory.
   * (With the length of the body, `endWithoutBody` would wait for it.)
   * @returns false if the connection must be closed
   */
  #writeHead(head: string): boolean {
    if (Math.random() < CLOSING_SHARE) {
      this.#response.writeStatus(head + closingRest(undefined));
      return false;
    }
    this.#response.writeStatus(this.traffic.draining ? head + CLOSING : head).endWithoutBody();
    return true;
  }
}

/** Of the answers without a body. A client that reads none of them gets 16 on average, of some 200 bytes. */
const CLOSING_SHARE = 1 / 16;
/** Tells `tryEnd` that the body is complete. */
const WHOLE = 0;
/** uWebSockets.js writes this after a status; here it ends the whole answer. */
const LINE_END = '\r\n';
const CLOSING = `${LINE_END}connection: close`;

/**
 * The rest, after the head, of an answer that closes the connection. uWebSockets.js could close it too, but only after the
 * client has taken everything, and it would handle further requests until then. So the whole answer is written as if it were
 * a status line: uWebSockets.js does not learn that the answer is complete, and `close` then ends the connection.
 */
function closingRest(body: string | undefined): string {
  if (body === undefined) return CLOSING + LINE_END;
  const length = Buffer.byteLength(body) + LINE_END.length;
  return `${CLOSING}${LINE_END}content-length: ${length}${LINE_END}${LINE_END}${body}`;
}
