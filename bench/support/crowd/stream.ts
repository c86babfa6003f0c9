/** One kind of buyers: their requests, how often, and on how many connections. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Answered, Line } from './line.ts';
import { countAnswer, type Tally, windowAt } from './tally.ts';

export interface StreamPlan {
  readonly name: string;
  readonly saleId: string;
  /** Connections. */
  readonly lines: number;
  /**
   * Requests per second of an open loop, whatever happens to earlier ones. `undefined`: each line sends its next
   * request when it has an answer.
   */
  readonly perSecond: number | undefined;
  readonly fromMs: number;
  readonly toMs: number;
  /** Whether they wait for `201`; otherwise `202` is enough for them. */
  readonly awaitCommit?: boolean;
}

export interface StreamResult {
  readonly tally: Tally;
  /** Answers of status 503 that had no `Retry-After`. */
  readonly withoutRetryAfter: number;
}

const TICK_MS = 1;
const SHED = new Set(['busy', 'unavailable', 'unknown']);
/** Time to wait for the last answers. */
const LAST_ANSWERS_MS = 5_000;

export class Stream {
  readonly #plan: StreamPlan;
  readonly #url: URL;
  /** The begin of the run by `Date.now()`, because streams run in several processes. */
  #beginMs = 0;
  readonly #tally: Tally = {};
  readonly #free: Line[] = [];
  readonly #lines: Line[];
  #buyers = 0;
  #underWay = 0;
  #withoutRetryAfter = 0;

  constructor(plan: StreamPlan, url: string) {
    this.#plan = plan;
    this.#url = new URL(url);
    const { hostname, port } = this.#url;
    this.#lines = Array.from({ length: plan.lines }, () => new Line(hostname, Number(port)));
    this.#free.push(...this.#lines);
  }

  async connect(): Promise<void> {
    // Not all at once, because the listener's queue is limited.
    for (let i = 0; i < this.#lines.length; i += 200)
      await Promise.all(this.#lines.slice(i, i + 200).map((line) => line.open()));
  }

  async run(beginMs: number): Promise<StreamResult> {
    this.#beginMs = beginMs;
    const { fromMs, toMs, perSecond } = this.#plan;
    await delay(Math.max(0, this.#beginMs + fromMs - Date.now()));
    if (perSecond === undefined) await this.#closedLoop(toMs);
    else await this.#openLoop(perSecond);
    const deadline = Date.now() + LAST_ANSWERS_MS;
    while (this.#underWay > 0 && Date.now() < deadline) await delay(10);
    for (const line of this.#lines) line.close();
    return { tally: this.#tally, withoutRetryAfter: this.#withoutRetryAfter };
  }

  async #openLoop(perSecond: number): Promise<void> {
    const { fromMs, toMs } = this.#plan;
    let due = 0;
    for (let now = this.#now(); now < toMs; now = this.#now()) {
      for (const until = ((now - fromMs) / 1_000) * perSecond; due < until; due++) {
        const line = this.#free.pop();
        if (line) this.#ask(line, fromMs + (due / perSecond) * 1_000);
        else windowAt(this.#tally, now).unsent++;
      }
      await delay(TICK_MS);
    }
  }

  async #closedLoop(toMs: number): Promise<void> {
    while (this.#now() < toMs) {
      for (let line = this.#free.pop(); line; line = this.#free.pop()) this.#ask(line, this.#now());
      await delay(TICK_MS);
    }
  }

  /** @param dueMs when the request should have been sent: a late generator must not make the node look faster */
  #ask(line: Line, dueMs: number): void {
    const { name, saleId, awaitCommit } = this.#plan;
    const prefer = awaitCommit ? '' : 'Prefer: respond-async\r\n';
    const head = `POST /v1/sales/${saleId}/orders HTTP/1.1\r\nHost: localhost\r\n${prefer}`;
    this.#underWay++;
    windowAt(this.#tally, dueMs).asked++;
    line.ask(`${head}X-Buyer-Id: ${name}-${this.#buyers++}\r\nContent-Length: 0\r\n\r\n`, (answer) => {
      this.#underWay--;
      this.#free.push(line);
      this.#count(answer, dueMs);
    });
  }

  #count({ code, retryAfter }: Answered, dueMs: number): void {
    const now = this.#now();
    countAnswer(windowAt(this.#tally, now), code, now - dueMs);
    if (SHED.has(code) && !retryAfter) this.#withoutRetryAfter++;
  }

  #now(): number {
    return performance.timeOrigin + performance.now() - this.#beginMs;
  }
}
