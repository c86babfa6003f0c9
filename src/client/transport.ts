/**
 * One call of a port: requests, repetitions, and what the answers mean.
 *
 *   ask ──an answer that decides──> done
 *    │ ──busy, unavailable: nothing was done──────────> pause, ask again
 *    │ ──unknown, a broken connection, no answer──────> pause, ask again, if a second request does no harm
 *    │ ──the deadline is over──> the last answer; `unknown` if a request before it may have been executed
 *
 * Only what browsers have too is used: fetch, timers, AbortController.
 */

export interface ClientOptions {
  /** Where the port is, such as `https://shop.example`; a path in it comes before each route. */
  readonly url: string;
  /** Sent with each request; a function is asked each time. */
  readonly headers?: HeaderSource | undefined;
  /** A call is repeated for so long, in milliseconds, from 1. Default 10,000. */
  readonly deadlineMs?: number | undefined;
  /** One request may take so long, in milliseconds, from 1. */
  readonly attemptMs?: number | undefined;
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

export type Headers = Readonly<Record<string, string>>;
export type HeaderSource = Headers | (() => Headers | Promise<Headers>);

export interface CallOptions {
  /** Ends the call, which then rejects with the signal's reason. What was sent may be executed all the same. */
  readonly signal?: AbortSignal | undefined;
}

/** Something answered that is no port of Stockade, or not of this version: a wrong address, or a gateway's own page. */
export class UnexpectedAnswer extends Error {
  readonly status: number;

  constructor(url: string, status: number, text: string) {
    super(
      `${url} answered ${status} with ${JSON.stringify(text.slice(0, 200))}: is this the address of Stockade's port?`,
    );
    this.name = 'UnexpectedAnswer';
    this.status = status;
  }
}

export interface Request extends CallOptions {
  readonly route: readonly [method: string, path: string];
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  readonly headers?: Headers;
  /** Asked twice it does what it does once. Without it, only what was certainly not executed is asked again. */
  readonly repeatable: boolean;
  /** What it means that nobody knows how it ended: a question is `unavailable`, a change `unknown`. */
  readonly changes: boolean;
  readonly attemptMs?: number;
}

export interface Problem {
  readonly code: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
}

export type Answer =
  | { readonly ok: true; readonly status: number; readonly body: unknown }
  | { readonly ok: false; readonly problem: Problem };

const DEADLINE_MS = 10_000;
const PAUSE_FIRST_MS = 100;
const PAUSE_MAX_MS = 2_000;
const FACTOR = 2;
/** Nothing was done: another request does no harm. */
const NOT_DONE = ['busy'];
/** Ask again; something may have been done. */
const PASSING = ['unknown', 'unavailable', 'internal'];
/** They tell nothing of a request before this one. */
const OF_THIS_REQUEST = ['busy', 'unavailable', 'internal', 'rate_limited', 'unauthenticated'];

export class Transport {
  readonly #base: string;
  readonly #options: ClientOptions;
  readonly #attemptMs: number;

  /** @throws TypeError for an address that is none, RangeError for a time out of range */
  constructor(options: ClientOptions, attemptMs: number) {
    const { url } = options;
    if (!/^https?:\/\//.test(String(url)) || !URL.canParse(url))
      throw new TypeError(`url is ${JSON.stringify(url)}: must begin with http:// or https://`);
    for (const name of ['deadlineMs', 'attemptMs'] as const) {
      const ms = options[name];
      if (ms !== undefined && !(ms >= 1)) throw new RangeError(`${name} is ${ms}: must be at least 1`);
    }
    this.#base = url.replace(/\/+$/, '');
    this.#options = options;
    this.#attemptMs = options.attemptMs ?? attemptMs;
  }

  /** @throws UnexpectedAnswer, the signal's reason */
  async call(request: Request): Promise<Answer> {
    const attemptMs = Math.max(this.#attemptMs, request.attemptMs ?? 0);
    const deadline = now() + Math.max(this.#options.deadlineMs ?? DEADLINE_MS, request.attemptMs ?? 0);
    let isOpen = false;
    for (let pauseMs = PAUSE_FIRST_MS; ; pauseMs = Math.min(pauseMs * FACTOR, PAUSE_MAX_MS)) {
      const { answer, retryAfterMs } = await this.#ask(request, Math.min(attemptMs, deadline - now()));
      if (answer.ok) return answer;
      const { code } = answer.problem;
      const waitMs = Math.max(retryAfterMs, pauseMs * (0.5 + Math.random() / 2));
      const mayRepeat = NOT_DONE.includes(code) || (request.repeatable && PASSING.includes(code));
      isOpen ||= request.changes && (code === 'unknown' || code === 'internal');
      if (!mayRepeat || now() + waitMs >= deadline) {
        return isOpen && OF_THIS_REQUEST.includes(code)
          ? { ok: false, problem: stillOpen(answer.problem) }
          : answer;
      }
      await pause(waitMs, request.signal);
    }
  }

  async #ask(request: Request, limitMs: number): Promise<{ answer: Answer; retryAfterMs: number }> {
    const { signal } = request;
    signal?.throwIfAborted();
    const controller = new AbortController();
    const give = () => controller.abort(signal?.reason);
    signal?.addEventListener('abort', give, { once: true });
    const timer = setTimeout(
      () => controller.abort(new Error(`no answer within ${Math.ceil(limitMs)} ms`)),
      limitMs,
    );
    try {
      const url = this.#urlOf(request);
      const response = await this.#send(url, request, controller.signal);
      const text = await response.text();
      return { answer: read(url, response.status, text, request), retryAfterMs: retryAfter(response) };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof UnexpectedAnswer) throw error;
      return { answer: { ok: false, problem: noAnswer(request, reasonOf(error)) }, retryAfterMs: 0 };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', give);
    }
  }

  async #send(url: string, { route, body, headers }: Request, signal: AbortSignal): Promise<Response> {
    const { fetch = globalThis.fetch, headers: source } = this.#options;
    const given = typeof source === 'function' ? await source() : source;
    return fetch(url, {
      method: route[0],
      headers: {
        ...given,
        ...headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal,
    });
  }

  #urlOf({ route, params = {}, query = {} }: Request): string {
    const path = route[1].replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(params[name])),
    );
    const search = new URLSearchParams(
      Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined),
    ).toString();
    return `${this.#base}${path}${search && `?${search}`}`;
  }
}

function read(url: string, status: number, text: string, request: Request): Answer {
  const body = parsed(text);
  if (status >= 200 && status < 300) {
    // Only metrics are no JSON.
    return { ok: true, status, body: body ?? text };
  }
  if (isProblem(body)) return { ok: false, problem: body };
  if (status === 503 && typeof body === 'object') return { ok: true, status, body };
  // A gateway speaks for a port that it could not reach.
  if (status >= 500) return { ok: false, problem: noAnswer(request, `a gateway answered ${status}`) };
  throw new UnexpectedAnswer(url, status, text);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && typeof (body as Problem).code === 'string';
}

function noAnswer({ changes }: Request, detail: string): Problem {
  return changes
    ? { code: 'unknown', title: 'No answer came: it may be done or not', status: 0, detail }
    : { code: 'unavailable', title: 'No answer came', status: 0, detail };
}

function stillOpen({ title, code }: Problem): Problem {
  const detail = `A request before had no answer; the last one was answered ${code}: ${title}`;
  return { code: 'unknown', title: 'It is not known whether it is done', status: 0, detail };
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { message?: string } };
  return [message, cause?.message].filter(Boolean).join(': ') || String(error);
}

function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get('retry-after') ?? 0);
  return Number.isFinite(seconds) ? seconds * 1_000 : 0;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}

/** Milliseconds on a clock that nobody sets. */
function now(): number {
  return performance.now();
}
