/**
 * One request and its answer, whichever program speaks HTTP (uws/uws-exchange.ts, node-http/node-exchange.ts).
 *
 * An answer is written at the end of the turn (departures.ts). A client that has not taken the answers before it by then did
 * not wait for them: its connection is closed, so that unread answers never pile up here. A long answer is written as the
 * client takes it, and is under way until then: a stop waits for it, and the next request before its end is a pipeline.
 */

import { isUtf8 } from 'node:buffer';
import type { Departing } from './departures.ts';
import type { HttpRequest } from './http-request.ts';
import { type ProblemCode, problem, type Reply } from './problem.ts';
import type { Traffic } from './traffic.ts';

export const MAX_BODY_BYTES = 4_096;
/** Of a body that comes in pieces. */
const LEAST_KEPT_BYTES = 64;
/** Of an answer that the client takes at once or not at all: with its head it fits into the 16 KB that uWS gathers before a write. */
const MOST_WHOLE_CHARACTERS = 4_096;

/** Reads what it needs from the request at once: the request is valid only within the call. */
export type Handler = (exchange: Exchange, request: HttpRequest) => void | Promise<void>;

export interface Observer {
  /** A handler has thrown. The client gets `500` without the reason. */
  fault(error: unknown): void;
}

/** A body that is not read, and the answer that it deserves. */
export interface RefusedBody {
  readonly refused: Reply;
  readonly code: ProblemCode;
}

export type Body = { readonly text: string } | RefusedBody;

/** Who reads a body: is called once, by one of the two. */
export interface BodyReader {
  /** @param bytes only valid within the call: uWS reuses their memory */
  body(bytes: Uint8Array): void | Promise<void>;
  refused(body: RefusedBody): void;
}

const NO_BYTES = new Uint8Array(0);
const NOT_UTF8 = refusedAs('invalid_request', 'the body is not valid UTF-8');
const tooLarge = (maxBytes: number) => refusedAs('payload_too_large', `the body may have ${maxBytes} bytes`);

/** What all exchanges of one port share. */
export interface Port {
  readonly traffic: Traffic;
  readonly observer: Observer;
}

export abstract class Exchange implements Departing {
  protected readonly traffic: Traffic;
  /** The answer must not have a body. */
  protected readonly toHead: boolean;
  readonly #observer: Observer;
  #reader: BodyReader | undefined;
  #maxBytes = 0;
  #size = 0;
  /** What has come of a body that does not come in one piece; `#size` bytes of it. */
  #kept: Buffer | undefined;
  #over = false;
  #reply: Reply | undefined;
  #isLast: boolean;

  /** @param toHead the answer must not have a body; it is the last one of its connection */
  constructor({ traffic, observer }: Port, toHead: boolean) {
    this.traffic = traffic;
    this.toHead = toHead;
    this.#observer = observer;
    this.#isLast = toHead;
    traffic.begin();
  }

  /** The address of who holds the connection: 4 bytes, or 16. */
  abstract get peer(): Uint8Array;

  /** Has each piece of the body handed to `received` as it comes. */
  protected abstract receive(request: HttpRequest): void;

  /**
   * Writes the answer.
   * @param isLast the connection is closed behind it
   * @param isLong what the client has no room for is kept; `end` is called when the client has taken it
   * @returns whether the client has taken all that was written so far
   */
  protected abstract write(reply: Reply, isLast: boolean, isLong: boolean): boolean;

  /** Closes the connection at once. */
  protected abstract close(): void;

  /** Runs a callback of the server. What it throws is answered and reported, and never reaches the server. */
  run(callback: () => void | Promise<void>): void {
    try {
      const ended = callback();
      if (ended instanceof Promise) ended.catch((error) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /**
   * Hands over the whole body or why it is refused. What is too long is not kept.
   *
   * uWS never says of a body of no bytes that this was its end, if the head came in two pieces: who waited for that would
   * wait until the connection is closed.
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

  /** As `readBytes`, for callers who want text and can afford a callback. */
  readBody(
    request: HttpRequest,
    done: (body: Body) => void | Promise<void>,
    maxBytes = MAX_BODY_BYTES,
  ): void {
    this.readBytes(request, { body: (bytes) => done(decode(bytes)), refused: done }, maxBytes);
  }

  /** @param chunk only valid within the call */
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

  /** A client may send each byte by itself: a list of pieces would cost a hundred times what they hold. */
  #keep(chunk: Uint8Array): void {
    if (!this.#kept || this.#size > this.#kept.length) {
      const room = Buffer.allocUnsafeSlow(
        Math.min(this.#maxBytes, Math.max(LEAST_KEPT_BYTES, 2 * this.#size)),
      );
      this.#kept?.copy(room);
      this.#kept = room;
    }
    this.#kept.set(chunk, this.#size - chunk.byteLength);
  }

  /** As `run`, without a closure for every request. */
  #read(bytes: Uint8Array): void {
    try {
      this.#reader!.body(bytes)?.catch((error) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Its answer is there, and closes the connection. */
  get isLastAnswered(): boolean {
    return this.#isLast && this.#reply !== undefined;
  }

  /** As `reply`, and closes the connection: what has come on it meanwhile is not looked at. */
  replyLast(reply: Reply): void {
    this.#isLast = true;
    this.reply(reply);
  }

  /** The first answer counts; after an abort none does. */
  reply(reply: Reply): void {
    if (this.#over || this.#reply) return;
    this.#reply = reply;
    this.traffic.departures.add(this);
  }

  depart(): void {
    if (this.#over) return;
    const reply = this.#reply!;
    const isLong = !this.#isLast && reply.body.length > MOST_WHOLE_CHARACTERS;
    const isTaken = this.write(reply, this.#isLast, isLong);
    if (isLong && !isTaken) return;
    this.end();
    if (this.#isLast || !isTaken) this.close();
  }

  /** The answer has been taken, or nobody is there any more to take it. */
  protected end(): void {
    if (this.#over) return;
    this.#over = true;
    this.traffic.end();
  }

  #failed(error: unknown): void {
    this.#observer.fault(error);
    this.reply(problem('internal'));
  }
}

function refusedAs(code: ProblemCode, detail: string): RefusedBody {
  return { refused: problem(code, { detail }), code };
}

function isZero(length: string): boolean {
  // Not by its value: `0x0` is refused by uWS when the handler was called.
  return /^0+$/.test(length);
}

export function decode(bytes: Uint8Array): Body {
  return isUtf8(bytes)
    ? { text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString() }
    : NOT_UTF8;
}
