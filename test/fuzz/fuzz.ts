/**
 * Fuzzes the HTTP ports of a node: sessions of requests, made from the ports' descriptions and then corrupted.
 *
 * Every answer is judged (judge.ts), and so is what the node logs. fast-check shrinks a failing session by running smaller
 * ones against the same node. If the node has died, that is impossible, and the session is printed as it was.
 */
import fc from 'fast-check';
import { FuzzConnection } from './connection.ts';
import type { PortName } from './description.ts';
import { objection, objectionTo } from './judge.ts';
import { type RequestSpec, type Session, sessions } from './requests.ts';
import type { Target } from './target.ts';
import { pathOf, type ReadAnswer, wire } from './wire.ts';

/** A valid request must be answered within this time, even on a busy machine. */
const ANSWER_LIMIT_MS = 60_000;
/** An invalid request may never be answered, so the fuzzer waits only this long for it. */
const SILENCE_MS = 30;
const SESSIONS_PER_SALES = 400;
/**
 * Requests of one case; the average is somewhat higher. When enough requests were sent, the remaining cases are
 * skipped.
 */
const REQUESTS_PER_CASE = 8;
/** Connections at the same time. */
const MAX_BESIDE = 4;

export interface FuzzOptions {
  readonly seed: number;
  /** The least number of requests. */
  readonly requests: number;
  /** The path that fast-check printed, to run one case again. */
  readonly path?: string | undefined;
  progress?(requests: number): void;
}

export interface FuzzReport {
  readonly requests: number;
  readonly connections: number;
  /** How often each answer came, such as `201` or `409 sold_out`; `closed` and `silence` count requests without one. */
  readonly answers: Readonly<Record<string, number>>;
  readonly failure: { readonly what: string; readonly path: string; readonly sessions: unknown } | undefined;
}

export async function fuzz(
  target: Target,
  { seed, requests, path, progress }: FuzzOptions,
): Promise<FuzzReport> {
  const run = new Run(target);
  const beside = fc.array(sessions(target.apis), { minLength: 1, maxLength: MAX_BESIDE });
  const property = fc.asyncProperty(beside, async (all) => {
    if (run.requests >= requests && !run.hasFailed) return;
    await run.all(all);
    progress?.(run.requests);
  });
  await target.newSales();
  const result = await fc.check(property, {
    seed,
    numRuns: Math.ceil(requests / REQUESTS_PER_CASE),
    ...(path !== undefined && { path }),
  });
  const { requests: sent, connections } = run;
  const answers = Object.fromEntries([...run.answers].sort(([, a], [, b]) => b - a));
  if (!result.failed) return { requests: sent, connections, answers, failure: undefined };
  const what =
    result.errorInstance instanceof Error ? result.errorInstance.message : String(result.errorInstance);
  const failure = { what, path: result.counterexamplePath ?? '', sessions: result.counterexample?.[0] };
  return { requests: sent, connections, answers, failure };
}

class Run {
  readonly answers = new Map<string, number>();
  requests = 0;
  connections = 0;
  hasFailed = false;
  readonly #target: Target;
  #sessions = 0;

  constructor(target: Target) {
    this.#target = target;
  }

  async all(beside: readonly Session[]): Promise<void> {
    try {
      if (this.#sessions++ % SESSIONS_PER_SALES === SESSIONS_PER_SALES - 1) await this.#target.newSales();
      await Promise.all(beside.map((session) => this.#session(session)));
      const complaint = await this.#target.complaint();
      if (complaint !== undefined) throw new Error(`the node complains: ${complaint}`);
    } catch (error) {
      this.hasFailed = true;
      throw error;
    }
  }

  async #session({ port, requests }: Session): Promise<void> {
    let connection: FuzzConnection | undefined;
    try {
      let unanswered = 0;
      for (const spec of requests) {
        if (!connection || connection.isClosed || unanswered > 0) {
          if (spec.framing.kind !== 'pipelined' || connection?.isClosed !== false) {
            connection?.end();
            connection = await FuzzConnection.open(this.#target.portOf(port));
            this.connections++;
            unanswered = 0;
          }
        }
        unanswered = (await this.#request(connection, spec, unanswered)) ? 0 : unanswered + 1;
      }
      // Requests sent without waiting may still be answered.
      if (connection && unanswered > 0) await this.#rest(connection, port, requests);
    } finally {
      connection?.end();
    }
  }

  /** @returns whether the connection can be used further: all requests on it are answered */
  async #request(connection: FuzzConnection, spec: RequestSpec, unanswered: number): Promise<boolean> {
    const { names } = this.#target;
    const { bytes, cuts, isSound } = wire(spec, names);
    this.requests++;
    await connection.send(bytes, cuts);
    if (spec.framing.kind === 'pipelined') return false;
    if (spec.framing.kind === 'abort') {
      if (spec.framing.reset) connection.reset();
      else connection.end();
      return false;
    }
    const known = isSound && unanswered === 0;
    const answer = await connection.answer(known ? ANSWER_LIMIT_MS : SILENCE_MS, spec.method === 'HEAD');
    this.#count(answer);
    if (typeof answer === 'string') {
      if (known) throw new Error(`${shown(spec)} got no answer: ${answer}`);
      return false;
    }
    this.#learn(answer);
    const api = this.#target.apis[spec.port];
    const request = { method: spec.method, path: pathOf(spec, names) };
    const toHead = spec.method === 'HEAD';
    const against = known && !toHead ? objectionTo(api, request, answer) : objection(api, answer, toHead);
    if (against !== undefined)
      throw new Error(`${shown(spec)}: ${against}\n${answer.status} ${answer.body.slice(0, 1_000)}`);
    // The answer announces the close before the end of the connection is seen here.
    const goesOn = answer.headers.get('connection') !== 'close';
    return known && goesOn && !spec.headers.some(([name]) => name === 'Connection');
  }

  /** Judges whatever answers come, in any order. */
  async #rest(connection: FuzzConnection, port: PortName, requests: readonly RequestSpec[]): Promise<void> {
    const mayBeToHead = requests.some(({ method }) => method === 'HEAD');
    for (;;) {
      const answer = await connection.answer(SILENCE_MS, false);
      if (typeof answer === 'string') return;
      this.#count(answer);
      const toHead = mayBeToHead && answer.body === '';
      const against = objection(this.#target.apis[port], answer, toHead);
      if (against !== undefined)
        throw new Error(`${against}\n${answer.status} ${answer.body.slice(0, 1_000)}`);
    }
  }

  #count(answer: ReadAnswer | 'closed' | 'silence'): void {
    const code = typeof answer === 'string' ? '' : /"code":"(\w+)"/.exec(answer.body)?.[1];
    const name = typeof answer === 'string' ? answer : `${answer.status}${code ? ` ${code}` : ''}`;
    this.answers.set(name, (this.answers.get(name) ?? 0) + 1);
  }

  #learn({ status, body }: ReadAnswer): void {
    const orderId = status < 300 ? /"orderId":"(\d+)"/.exec(body)?.[1] : undefined;
    if (orderId !== undefined) this.#target.learn(orderId);
  }
}

function shown({ method, target, framing }: RequestSpec): string {
  return `${method} ${target.slice(0, 200)} (${framing.kind === 'broken' ? framing.how : framing.kind})`;
}
