/**
 * A request and its answer over uWebSockets.js. Its rules, each of which ends the process or corrupts memory when it is
 * broken, are kept here and nowhere else: an abort handler is always set, nothing is read from the request later, the
 * response is not touched after an abort or twice, and what is written outside the handler is corked.
 */
import type { HttpResponse } from 'uWebSockets.js';
import { Exchange, type Port } from '../exchange.ts';
import type { Reply } from '../problem.ts';

export class UwsExchange extends Exchange {
  /** The one that writes now: one function for all of them, instead of one for each answer. */
  static #writing: UwsExchange;
  static readonly #writeNow = () => UwsExchange.#writing.#write();
  readonly #response: HttpResponse;
  #reply!: Reply;
  #isLast = false;
  #isLong = false;
  #isTaken = false;

  constructor(response: HttpResponse, port: Port, toHead = false) {
    super(port, toHead);
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

  protected close(): void {
    this.#response.close();
  }

  #write(): void {
    const { head, body } = this.#reply;
    this.#isTaken = true;
    if (this.#isLast) this.#response.writeStatus(head.text + lastWords(this.toHead ? undefined : body));
    else if (this.#isLong) this.#isTaken = this.#writeLong(head.text, Buffer.from(body));
    else if (this.traffic.draining) this.#response.writeStatus(head.text).end(body, true);
    else this.#isTaken = this.#response.writeStatus(head.text).tryEnd(body, WHOLE)[1];
  }

  /** What has no room now follows when there is some. */
  #writeLong(head: string, body: Buffer): boolean {
    const response = this.#response.writeStatus(this.traffic.draining ? head + CLOSING : head);
    if (response.tryEnd(body, body.length)[1]) return true;
    response.onWritable((offset) => {
      const [isTaken, isDone] = response.tryEnd(body.subarray(offset), body.length);
      if (isDone) this.end();
      return isTaken;
    });
    return false;
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
