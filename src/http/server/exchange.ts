/**
 * One request and its answer, over either HTTP server (uws/uws-exchange.ts, node-http/node-exchange.ts).
 *
 * An answer is written at the end of the turn of the event loop (deferred-replies.ts). If the client has not read the earlier
 * answers by then, it did not wait for them: its connection is closed, so that unread answers never pile up in memory.
 *
 * An answer in pushed pieces goes on until its maker or the client ends it. A client that does not take the pieces is disconnected.
 *
 * A long answer is written as fast as the client reads it. Its request is under way until the client has read the whole answer: a
 * shutdown waits for that, and a client that sends the next request earlier loses the connection.
 */

import { type Body, type BodyReader, decode, MAX_BODY_BYTES, tooLarge } from './body.ts';
import type { DeferredReply } from './deferred-replies.ts';
import type { HttpRequest } from './http-request.ts';
import { problem } from './replies/problem.ts';
import type { HeadLines, PiecedReply, Push, PushedReply, Reply } from './replies/reply.ts';
import type { Traffic } from './traffic.ts';

/** Size of the first buffer for a body that arrives in pieces. */
const MIN_BUFFER_BYTES = 64;
/** A longer answer is written as the client reads it. A shorter one fits, with its head, into the 16 KB that uWebSockets.js buffers. */
const MAX_SHORT_CHARACTERS = 4_096;

/** Must read what it needs from the request before it returns or awaits: the request is valid only within the call. */
export type Handler = (exchange: Exchange, request: HttpRequest) => void | Promise<void>;

export interface Observer {
  /** A handler has thrown. The client is answered `500`, without the reason. */
  fault(error: unknown): void;
}

const NO_BYTES = new Uint8Array(0);

/** What all exchanges of one port share. */
export interface Port {
  readonly traffic: Traffic;
  readonly observer: Observer;
}

export abstract class Exchange implements DeferredReply, Push {
  protected readonly traffic: Traffic;
  /** A `HEAD` request: the answer must not have a body. */
  protected readonly isHead: boolean;
  /** Added to the head of the answer, whatever it is. */
  protected moreLines: HeadLines | undefined;
  readonly #observer: Observer;
  #reader: BodyReader | undefined;
  #maxBytes = 0;
  #size = 0;
  /** The pieces of the body so far, if it does not come in one: the first `#size` bytes are filled. */
  #kept: Buffer | undefined;
  #isOver = false;
  #reply: Reply | PiecedReply | undefined;
  #onRoom: (() => void) | undefined;
  #pushed: PushedReply | undefined;
  #isLast: boolean;

  /** @param isHead a `HEAD` request: its answer has no body, and closes the connection */
  constructor({ traffic, observer }: Port, isHead: boolean) {
    this.traffic = traffic;
    this.isHead = isHead;
    this.#observer = observer;
    this.#isLast = isHead;
    traffic.begin();
  }

  /** The address of the connection's other end: 4 bytes, or 16. */
  abstract get peer(): Uint8Array;

  /** Makes the server call `received` for each piece of the body. */
  protected abstract receive(request: HttpRequest): void;

  /**
   * Writes the answer.
   * @param isLast whether the connection is closed after it
   * @param isLong whether the rest is kept if the client can't take all of it now; `end` is called once the client has
   * @returns whether the client has taken everything written so far
   */
  protected abstract write(reply: Reply, isLast: boolean, isLong: boolean): boolean;

  /** Writes the head of an answer that is sent in pieces. The connection is closed after that answer. */
  protected abstract begin(reply: Omit<Reply, 'body'>): void;

  /** @returns whether the client has room for more; if not, `hasRoom` is called when it has */
  protected abstract writePiece(piece: string): boolean;

  /** @returns false if the client has not taken the earlier pieces; this one may not be sent then */
  protected abstract pushPiece(piece: Uint8Array): boolean;

  /** Writes the end of an answer in pieces. */
  protected abstract endPieces(): void;

  /** Closes the connection at once. */
  protected abstract close(): void;

  /** Adds to the head of the answer, whatever it is. */
  addLines(lines: HeadLines): void {
    const { text = '', fields = [] } = this.moreLines ?? {};
    this.moreLines = text === '' ? lines : { text: text + lines.text, fields: [...fields, ...lines.fields] };
  }

  /** Runs a callback of the server. If it throws, the error is answered and reported, and never reaches the server. */
  run(callback: () => void | Promise<void>): void {
    try {
      const ended = callback();
      if (ended instanceof Promise) ended.catch((error) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /**
   * Calls `reader` with the whole body, or with the reason why it is refused. A body that is too long is not kept.
   *
   * An empty body is handled here, because uWebSockets.js does not always report its end: if the head came in two pieces, the
   * reader would wait until the connection is closed.
   */
  readBytes(request: HttpRequest, reader: BodyReader, maxBytes = MAX_BODY_BYTES): void {
    this.#reader = reader;
    if (isZero(request.getHeader('content-length'))) {
      this.#read(NO_BYTES);
      return;
    }
    this.#maxBytes = maxBytes;
    this.receive(request);
  }

  /** As `readBytes`, for callers that need text and can afford a closure. */
  readBody(
    request: HttpRequest,
    done: (body: Body) => void | Promise<void>,
    maxBytes = MAX_BODY_BYTES,
  ): void {
    this.readBytes(request, { body: (bytes) => done(decode(bytes)), refused: done }, maxBytes);
  }

  /** @param chunk valid only within the call */
  protected received(chunk: Uint8Array, isLast: boolean): void {
    if (this.#size > this.#maxBytes) return;
    this.#size += chunk.byteLength;
    if (this.#size > this.#maxBytes) this.run(() => this.#reader!.refused(tooLarge(this.#maxBytes)));
    else if (isLast && !this.#kept) this.#read(chunk);
    else {
      this.#keep(chunk);
      if (isLast) this.#read(this.#kept!.subarray(0, this.#size));
    }
  }

  /** Copies a piece. A client may send each byte by itself, and a list of pieces would take a hundred times their size. */
  #keep(chunk: Uint8Array): void {
    if (!this.#kept || this.#size > this.#kept.length) {
      const room = Buffer.allocUnsafeSlow(
        Math.min(this.#maxBytes, Math.max(MIN_BUFFER_BYTES, 2 * this.#size)),
      );
      this.#kept?.copy(room);
      this.#kept = room;
    }
    this.#kept.set(chunk, this.#size - chunk.byteLength);
  }

  /** Passes the body to the reader, as `run` would, but without a closure for every request. */
  #read(bytes: Uint8Array): void {
    try {
      this.#reader!.body(bytes)?.catch((error) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Whether the request was answered, with an answer that closes the connection. */
  get isLastAnswered(): boolean {
    return this.#isLast && this.#reply !== undefined;
  }

  /** As `reply`, and closes the connection. What has arrived on it meanwhile is discarded. */
  replyLast(reply: Reply): void {
    this.#isLast = true;
    this.reply(reply);
  }

  /** Answers the request. Only the first answer counts, and none after an abort. */
  reply(reply: Reply | PiecedReply): void {
    if (this.#isOver || this.#reply || this.#pushed) return;
    this.#reply = reply;
    this.traffic.deferred.add(this);
  }

  /** As `reply`. If there is an answer already, or the client has gone, it ends without having begun. */
  replyPushed(reply: PushedReply): void {
    if (this.#isOver || this.#reply || this.#pushed) {
      reply.ended();
      return;
    }
    this.#pushed = reply;
    this.traffic.deferred.add(this);
  }

  push(piece: Uint8Array): boolean {
    if (this.#isOver) return false;
    if (this.pushPiece(piece)) return true;
    this.end();
    this.close();
    return false;
  }

  finish(): void {
    if (this.#isOver) return;
    this.endPieces();
    this.end();
  }

  send(): void {
    if (this.#isOver) return;
    if (this.#pushed) {
      this.begin(this.#pushed);
      this.#pushed.begun(this);
      return;
    }
    const reply = this.#reply!;
    if ('pieces' in reply) return void this.#sendPieces(reply);
    const isLong = !this.#isLast && reply.body.length > MAX_SHORT_CHARACTERS;
    const isTaken = this.write(reply, this.#isLast, isLong);
    if (isLong && !isTaken) return;
    this.end();
    if (this.#isLast || !isTaken) this.close();
  }

  /**
   * Asks for the next piece only when the client has room for it, so at most one piece is in memory. A shutdown does not
   * wait for the end of the answer: the client continues at another node.
   */
  async #sendPieces(reply: PiecedReply): Promise<void> {
    try {
      this.begin(reply);
      for await (const piece of reply.pieces) {
        if (this.#isOver) return;
        if (this.traffic.draining) break;
        if (piece !== '' && !this.writePiece(piece)) await this.#untilRoom();
      }
      if (this.#isOver) return;
      if (!this.traffic.draining) {
        this.endPieces();
        this.end();
        return;
      }
    } catch (error) {
      this.#observer.fault(error);
    }
    this.end();
    this.close();
  }

  #untilRoom(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRoom = resolve;
      if (this.#isOver) resolve();
    });
  }

  protected hasRoom(): void {
    this.#onRoom?.();
  }

  /** The request is over: the client has taken the answer, or has gone. */
  protected end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.traffic.end();
    this.#onRoom?.();
    this.#pushed?.ended();
  }

  #failed(error: unknown): void {
    this.#observer.fault(error);
    this.reply(problem('internal'));
  }
}

function isZero(length: string): boolean {
  // By its digits and not its value: uWebSockets.js refuses `0x0` itself, after the handler has run.
  return /^0+$/.test(length);
}
