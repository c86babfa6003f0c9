/**
 * One request and its answer over uWebSockets.js. Its rules, each of which ends the process or corrupts memory when it is
 * broken, are kept here and nowhere else: an abort handler is always set, nothing is read from the request later, the
 * response is not touched after an abort or twice, and what is written outside the handler is corked.
 *
 * An answer is written at the end of the turn (departures.ts). A client that has not taken the answers before it by then did
 * not wait for them: its connection is closed, so that unread answers never pile up here. A long answer is written as the
 * client takes it, and is under way until then: a stop waits for it, and the next request before its end is a pipeline.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { isUtf8 } from 'node:buffer';
import { setTimeout as delay } from 'node:timers/promises';
import { monotonicMs } from '../../lib/monotonic.ts';
import { Connections } from './connections.ts';
import { type Departing, Departures } from './departures.ts';
import { type ProblemCode, problem, type Reply } from './problem.ts';

export const MAX_BODY_BYTES = 4_096;
/** Of a body that comes in pieces. */
const LEAST_KEPT_BYTES = 64;
/** Of an answer that uWS writes whole or not at all: with its head it fits into the 16 KB that it gathers before a write. */
const MOST_WHOLE_CHARACTERS = 4_096;

export type Method = 'get' | 'post' | 'patch';
/** Reads what it needs from the request at once: uWS reuses the request object. */
export type Handler = (exchange: Exchange, request: HttpRequest) => void | Promise<void>;

export interface Observer {
  /** A handler has thrown. The client gets `500` without the reason. */
  fault(error: unknown): void;
}

/** The requests under way on one port, for a stop that answers what it has begun. */
export class Traffic {
  #active = 0;
  #begun = 0;
  #whenIdle: (() => void) | undefined;
  readonly connections: Connections;
  readonly departures = new Departures();
  /** True once no more requests are wanted: each answer then closes its connection. */
  draining = false;

  constructor(connections = new Connections()) {
    this.connections = connections;
  }

  get active(): number {
    return this.#active;
  }

  begin(): void {
    this.#active++;
    this.#begun++;
  }

  end(): void {
    if (--this.#active === 0) this.#whenIdle?.();
  }

  /** Resolves when no request has been under way for `quietMs`, or after `timeoutMs`. */
  async quiet(quietMs: number, timeoutMs: number): Promise<void> {
    const deadline = monotonicMs() + timeoutMs;
    for (let seen = -1; seen !== this.#begun && monotonicMs() < deadline; ) {
      await this.#idle(deadline - monotonicMs());
      seen = this.#begun;
      await delay(Math.min(quietMs, Math.max(0, deadline - monotonicMs())));
    }
  }

  #idle(timeoutMs: number): Promise<void> {
    if (this.#active === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#whenIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
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

export class Exchange implements Departing {
  /** The one that writes now: one function for all of them, instead of one for each answer. */
  static #writing: Exchange;
  static readonly #writeNow = () => Exchange.#writing.#write();
  readonly #response: HttpResponse;
  readonly #port: Port;
  readonly #toHead: boolean;
  #reader: BodyReader | undefined;
  #maxBytes = 0;
  #size = 0;
  /** What has come of a body that does not come in one piece; `#size` bytes of it. */
  #kept: Buffer | undefined;
  #over = false;
  #reply: Reply | undefined;
  #isLast: boolean;
  /** The client has not taken the answers before this one. */
  #isDeaf = false;
  /** The client has yet to take the rest of this one. */
  #isLeaving = false;

  /** @param toHead the answer must not have a body; it is the last one of its connection */
  constructor(response: HttpResponse, port: Port, toHead = false) {
    this.#response = response;
    this.#port = port;
    this.#toHead = toHead;
    this.#isLast = toHead;
    port.traffic.begin();
    response.onAborted(() => this.#end());
  }

  /** Runs a callback of uWS. What it throws is answered and reported, and never reaches uWS. */
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
    this.#response.onData((chunk, isLast) => this.#received(chunk, isLast));
  }

  /** As `readBytes`, for callers who want text and can afford a callback. */
  readBody(
    request: HttpRequest,
    done: (body: Body) => void | Promise<void>,
    maxBytes = MAX_BODY_BYTES,
  ): void {
    this.readBytes(request, { body: (bytes) => done(decode(bytes)), refused: done }, maxBytes);
  }

  #received(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#size > this.#maxBytes) return;
    this.#size += chunk.byteLength;
    if (this.#size > this.#maxBytes) this.run(() => this.#reader!.refused(tooLarge(this.#maxBytes)));
    else if (isLast && !this.#kept) this.#read(new Uint8Array(chunk));
    else {
      this.#keep(new Uint8Array(chunk));
      if (isLast) this.#read(this.#kept!.subarray(0, this.#size));
    }
  }

  /**
   * uWS reuses the chunk's memory. A client may send each byte by itself: a list of pieces would cost a hundred times what
   * they hold.
   */
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

  /** The address of who holds the connection: 4 bytes, or 16. */
  get peer(): Uint8Array {
    return new Uint8Array(this.#response.getRemoteAddress());
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
    this.#port.traffic.departures.add(this);
  }

  depart(): void {
    if (this.#over) return;
    Exchange.#writing = this;
    this.#response.cork(Exchange.#writeNow);
    if (this.#isLeaving) return;
    this.#end();
    if (this.#isLast || this.#isDeaf) this.#response.close();
  }

  #write(): void {
    const { head, body } = this.#reply!;
    if (this.#isLast) this.#response.writeStatus(head + lastWords(this.#toHead ? undefined : body));
    else if (body.length > MOST_WHOLE_CHARACTERS) this.#writeLong(head, Buffer.from(body));
    else if (this.#port.traffic.draining) this.#response.writeStatus(head).end(body, true);
    else this.#isDeaf = !this.#response.writeStatus(head).tryEnd(body, WHOLE)[1];
  }

  /** What has no room now follows when there is some. */
  #writeLong(head: string, body: Buffer): void {
    const response = this.#response.writeStatus(this.#port.traffic.draining ? head + CLOSING : head);
    this.#isLeaving = !response.tryEnd(body, body.length)[1];
    if (!this.#isLeaving) return;
    response.onWritable((offset) => {
      const [isTaken, isDone] = response.tryEnd(body.subarray(offset), body.length);
      if (isDone) this.#end();
      return isTaken;
    });
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#port.traffic.end();
  }

  #failed(error: unknown): void {
    this.#port.observer.fault(error);
    this.reply(problem('internal'));
  }
}

/** For uWS: there is no more than this. */
const WHOLE = 0;
/** What uWS writes behind a status, which here is the end of the answer. */
const LINE_END = '\r\n';
const CLOSING = `${LINE_END}connection: close`;

/**
 * What follows the head of an answer after which the connection is closed. uWS would close it too, but only when the client
 * has taken all, and would go on to handle what the client sends until then: so the answer is given without uWS' knowing
 * that this was all of it, and the connection is then closed from here.
 */
function lastWords(body: string | undefined): string {
  if (body === undefined) return CLOSING + LINE_END;
  const length = Buffer.byteLength(body) + LINE_END.length;
  return `${CLOSING}${LINE_END}content-length: ${length}${LINE_END}${LINE_END}${body}`;
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
