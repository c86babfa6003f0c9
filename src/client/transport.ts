/**
 * Makes a call to a port: one request, and further ones until an answer is final.
 *
 *   request ──a final answer──────────────────────────────> done
 *     │ ──busy: nothing was done──────────────────────────> pause, next request
 *     │ ──unavailable, unknown, internal, no answer,
 *     │   no headers to send it with────────────────────> pause, next request, if the call may be repeated
 *     │ ──the deadline is over──> the last answer, or `unknown` if an earlier request may have been executed
 *
 * A stream is opened by one request. Its reader decides about the next one (sale-stream.ts).
 *
 * It uses only what browsers have too: fetch, timers, AbortController.
 */

export interface ClientOptions {
  /** URL of the port, such as `https://shop.example`. If it has a path, each route is appended to it. */
  readonly url: string;
  /** Sent with each request. A function is called for each request; if it fails, that request is not sent. */
  readonly headers?: HeaderSource | undefined;
  /** How long a call may repeat its request, in milliseconds, at least 1. Default 10,000. */
  readonly deadlineMs?: number | undefined;
  /** How long one request may take, in milliseconds, at least 1. Slow routes have at least their own time. */
  readonly attemptMs?: number | undefined;
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

export type Headers = Readonly<Record<string, string>>;
export type HeaderSource = Headers | (() => Headers | Promise<Headers>);

export interface CallOptions {
  /** Ends the call, which then rejects with the signal's reason. A request that was sent may still be executed. */
  readonly signal?: AbortSignal | undefined;
}

/** The answer does not come from a port of Stockade, or not from this version: a wrong address, or a gateway's own page. */
export class UnexpectedAnswer extends Error {
  readonly status: number;
  /** Of a purchase: its idempotency key. An earlier request of the purchase may have been executed. */
  key?: string;

  constructor(url: string, status: number, text: string) {
    super(
      isRedirect(status)
        ? `${url} answered with a redirect: use the address that it leads to`
        : `${url} answered ${status} with ${JSON.stringify(text.slice(0, 200))}: is this the address of Stockade's port?`,
    );
    this.name = 'UnexpectedAnswer';
    this.status = status;
  }
}

/** A browser hides the status of a redirect that it does not follow: it is 0. */
const isRedirect = (status: number) => status === 0 || (status >= 300 && status < 400);

export interface Request extends CallOptions {
  readonly route: Route;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly headers?: Headers;
  /** Whether sending it twice has the effect of sending it once. If not, it is repeated only if it was certainly not executed. */
  readonly repeatable: boolean;
  /** Whether it makes a change. Without an answer, a change ends as `unknown`, a query as `unavailable`. */
  readonly changes: boolean;
  /** Time that a slow route needs, in milliseconds: the call and each request may take at least this long. */
  readonly attemptMs?: number;
  /** Called before each request is sent. */
  readonly sent?: () => void;
  /** A node that is not ready answers 503 with a report, which is what the caller asked for. */
  readonly asksIfReady?: boolean;
}

/** The last element is a member that the answer always has. Without it, the answer is a text, also if it looks like JSON. */
export type Route = readonly [method: string, path: string, member?: string];

/** What a request is made of each time that it is sent. */
interface Written {
  readonly url: string;
  readonly body: string | undefined;
}

/** There are no headers for a request, so it was not sent. */
class NotSent extends Error {}

export interface Problem {
  readonly code: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
}

export type Answer =
  | { readonly ok: true; readonly status: number; readonly body: unknown }
  | { readonly ok: false; readonly problem: Problem };

/** An answer that goes on, or why there is none. */
export type Opened =
  | { readonly ok: true; readonly body: ReadableStream<Uint8Array> }
  | { readonly ok: false; readonly problem: Problem; readonly retryAfterMs: number };

const DEADLINE_MS = 10_000;
const PAUSE_FIRST_MS = 100;
const PAUSE_MAX_MS = 2_000;
const PAUSE_FACTOR = 2;
/** With less time, no request is sent: it would be executed, and its answer would come too late. */
const LEAST_ATTEMPT_MS = 100;
/** A timer with a longer time fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Answers that say that the request was not executed. It is always repeated. */
const NOT_EXECUTED = ['busy'];
/** Answers after which the request may have been executed, and the next one may succeed. */
const TRANSIENT = ['unknown', 'unavailable', 'internal'];
/** Answers that say nothing about an earlier request of the call. A node may not know a new sale yet that another node sells. */
const ABOUT_ONE_REQUEST = [
  'busy',
  'unavailable',
  'internal',
  'rate_limited',
  'unauthenticated',
  'token_required',
  'token_invalid',
  'unknown_sale',
];

export class Transport {
  readonly #base: string;
  readonly #options: ClientOptions;
  readonly #attemptMs: number;
  readonly #codes: readonly string[];

  /**
   * @param codes of the problems that the port is known to answer with
   * @throws TypeError if the URL or a header is wrong, RangeError if a time is
   */
  constructor(options: ClientOptions, attemptMs: number, codes: readonly string[]) {
    this.#base = baseOf(options.url);
    if (typeof options.headers === 'object') joined(options.headers);
    for (const name of ['deadlineMs', 'attemptMs'] as const) {
      const ms = options[name];
      if (ms !== undefined && !(ms >= 1)) throw new RangeError(`${name} is ${ms}, but must be at least 1`);
    }
    this.#options = options;
    this.#attemptMs = options.attemptMs ?? attemptMs;
    this.#codes = codes;
  }

  /**
   * @throws UnexpectedAnswer, the signal's reason, TypeError if the body has a value that JSON does not have, a header one that
   * HTTP does not have, or a part of the path is missing
   */
  async call(request: Request): Promise<Answer> {
    const written = { url: this.urlOf(request), body: encoded(request.body) };
    joined(request.headers);
    // A slow route has its own time, which a shorter option must not cut: the change would end as `unknown`.
    const attemptMs = Math.max(this.#attemptMs, request.attemptMs ?? 0);
    const deadline = now() + Math.max(this.#options.deadlineMs ?? DEADLINE_MS, request.attemptMs ?? 0);
    let mayBeDone = false;
    for (let pauseMs = PAUSE_FIRST_MS; ; pauseMs = Math.min(pauseMs * PAUSE_FACTOR, PAUSE_MAX_MS)) {
      const { answer, retryAfterMs } = await this.#ask(
        request,
        written,
        Math.min(attemptMs, deadline - now()),
      );
      if (answer.ok) return answer;
      const { code } = answer.problem;
      const waitMs = Math.max(retryAfterMs, pauseMs * (0.5 + Math.random() / 2));
      const mayRepeat = NOT_EXECUTED.includes(code) || (request.repeatable && TRANSIENT.includes(code));
      mayBeDone ||= request.changes && (code === 'unknown' || code === 'internal');
      const last: Answer =
        mayBeDone && ABOUT_ONE_REQUEST.includes(code)
          ? { ok: false, problem: outcomeUnknown(answer.problem) }
          : answer;
      if (!mayRepeat || deadline - now() < waitMs + LEAST_ATTEMPT_MS) return last;
      await pause(waitMs, request.signal);
      // The timers of a hidden tab are late, and those of a laptop that sleeps, or of a program that is busy.
      if (deadline - now() < LEAST_ATTEMPT_MS) return last;
    }
  }

  /**
   * Opens a stream of server-sent events. The caller has looked at the request's own headers (`joined`).
   * @param signal ends the stream, and the request before that
   * @throws UnexpectedAnswer, the signal's reason
   */
  async open(request: Request, signal: AbortSignal): Promise<Opened> {
    const url = this.urlOf(request);
    try {
      const response = await this.#send({ url, body: undefined }, request, signal);
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
      if (response.ok && isStream && response.body) return { ok: true, body: response.body };
      const text = await response.text();
      const answer = this.#answerOf(url, response.status, text, request);
      if (answer.ok) throw new UnexpectedAnswer(url, response.status, text);
      return { ok: false, problem: answer.problem, retryAfterMs: retryAfter(response) };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UnexpectedAnswer) throw error;
      return { ok: false, problem: failed(request, error), retryAfterMs: 0 };
    }
  }

  async #ask(
    request: Request,
    written: Written,
    limitMs: number,
  ): Promise<{ answer: Answer; retryAfterMs: number }> {
    const { signal } = request;
    signal?.throwIfAborted();
    const controller = new AbortController();
    const onAbort = () => controller.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    const timer = setTimeout(
      () => controller.abort(new Error(`no answer within ${Math.ceil(limitMs)} ms`)),
      Math.min(limitMs, MAX_TIMER_MS),
    );
    try {
      const response = await this.#send(written, request, controller.signal);
      const text = await response.text();
      const answer = this.#answerOf(written.url, response.status, text, request);
      return { answer, retryAfterMs: retryAfter(response) };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof UnexpectedAnswer) throw error;
      return { answer: { ok: false, problem: failed(request, error) }, retryAfterMs: 0 };
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async #send({ url, body }: Written, request: Request, signal: AbortSignal): Promise<Response> {
    const { route, headers: own, sent } = request;
    const { fetch = globalThis.fetch } = this.#options;
    const type = body === undefined ? undefined : { 'content-type': 'application/json' };
    const headers = await this.#headersWith(signal, own, type);
    if (!signal.aborted) sent?.();
    return fetch(url, {
      method: route[0],
      headers,
      ...(body !== undefined && { body }),
      // After some redirects, `fetch` would send a GET instead of this request, and its answer would look like success.
      ...(route[0] !== 'GET' && { redirect: 'manual' }),
      signal,
    });
  }

  /** @throws NotSent */
  async #headersWith(signal: AbortSignal, ...own: (Headers | undefined)[]): Promise<Headers> {
    const { headers: source } = this.#options;
    try {
      return joined(typeof source === 'function' ? await unlessAborted(source(), signal) : source, ...own);
    } catch (error) {
      throw new NotSent(reasonOf(error));
    }
  }

  /** @throws UnexpectedAnswer */
  #answerOf(url: string, status: number, text: string, request: Request): Answer {
    const member = request.route[2];
    const body = parsed(text);
    if (status >= 200 && status < 300) {
      if (member !== undefined && body[member] !== undefined) return { ok: true, status, body };
      // A page of HTML comes from somebody else: none of the texts begins like one.
      if (member === undefined && !/^\s*</.test(text)) return { ok: true, status, body: text };
      throw new UnexpectedAnswer(url, status, text);
    }
    if (this.#isProblem(body)) return { ok: false, problem: body };
    if (status === 503 && request.asksIfReady && body.status === 'not ready')
      return { ok: true, status, body };
    // A gateway answers so when it could not reach the port, or did not wait for the answer.
    if (status >= 500) return { ok: false, problem: noAnswer(request, `a gateway answered ${status}`) };
    throw new UnexpectedAnswer(url, status, text);
  }

  /** Gateways have codes too. A code that only a newer version knows comes with the type of a problem. */
  #isProblem(body: object): body is Problem {
    const { code, type } = body as Partial<Record<'code' | 'type', unknown>>;
    if (typeof code !== 'string') return false;
    return this.#codes.includes(code) || String(type).startsWith('/problems/');
  }

  /** @throws TypeError if a part of the path is missing, or can't be one */
  urlOf({ route, params = {}, query = {} }: Pick<Request, 'route' | 'params' | 'query'>): string {
    const path = route[1].replace(/\{(\w+)\}/g, (_, name: string) => partOf(name, params[name]));
    const search = new URLSearchParams(
      Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined),
    ).toString();
    return `${this.#base}${path}${search && `?${search}`}`;
  }
}

/** Without the slash at its end. Routes can't be appended to a query, and `fetch` refuses a URL with a user. @throws TypeError */
function baseOf(url: string): string {
  if (!/^https?:\/\//.test(String(url)) || !URL.canParse(url))
    throw new TypeError(`url is ${JSON.stringify(url)}, but must begin with http:// or https://`);
  const { origin, pathname, username, password, search, hash } = new URL(url);
  // The message does not show the text, because it may hold a password.
  if (`${username}${password}${search}${hash}` !== '')
    throw new TypeError('url must have no user, password, query or fragment');
  return `${origin}${pathname}`.replace(/\/+$/, '');
}

/** @throws TypeError: a part that is missing, or is `..`, would lead to another route, and half of a character to none */
function partOf(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '')
    throw new TypeError(`${name} must be a text that is not empty, not ${JSON.stringify(value)}`);
  if (/^\.\.?$/.test(value) || /\p{Surrogate}/u.test(value))
    throw new TypeError(`${name} is ${JSON.stringify(value)}, which can't be part of a path`);
  return encodeURIComponent(value);
}

/**
 * Headers of several sources. Of two with the same name, in whatever case, the later one counts: `fetch` would join their values.
 * @throws TypeError for a name or a value that HTTP does not have
 */
export function joined(...sources: (Headers | undefined)[]): Headers {
  const all = new globalThis.Headers();
  for (const [name, value] of sources.flatMap((source) => Object.entries(source ?? {}))) {
    try {
      all.set(name, value);
    } catch {
      // The message does not show the value, because it may be a token.
      throw new TypeError(
        `the header ${JSON.stringify(name)} can't be sent: its name or value has characters that HTTP does not allow`,
      );
    }
  }
  return Object.fromEntries(all);
}

/** `JSON.stringify` leaves out what JSON does not have, or makes null or {} of it, and the port would store that. */
function encoded(body: unknown): string | undefined {
  return JSON.stringify(body, function (this: Record<string, unknown>, name, value: unknown) {
    // As it was before its `toJSON` was called.
    const given = this[name];
    if (!isJson(given) || (given === undefined && Array.isArray(this)))
      throw new TypeError(`${name} is ${shown(given)}, which JSON does not have`);
    return value;
  });
}

function isJson(value: unknown): boolean {
  if (typeof value === 'number' || value instanceof Number || value instanceof Date)
    return Number.isFinite(Number(value));
  return !(
    typeof value === 'function' ||
    typeof value === 'symbol' ||
    value instanceof Map ||
    value instanceof Set
  );
}

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (value instanceof Map || value instanceof Set) return `a ${value.constructor.name}`;
  return String(value);
}

/** The members of a text that is a JSON object, otherwise none. */
function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

function noAnswer({ changes }: Request, detail: string): Problem {
  return changes
    ? { code: 'unknown', title: 'No answer came: the request may have been executed', status: 0, detail }
    : { code: 'unavailable', title: 'No answer came', status: 0, detail };
}

function failed(request: Request, error: unknown): Problem {
  return error instanceof NotSent
    ? { code: 'unavailable', title: 'The request was not sent', status: 0, detail: error.message }
    : noAnswer(request, reasonOf(error));
}

function outcomeUnknown({ title, code }: Problem): Problem {
  const detail = `A request may have been executed; the last answer was ${code}: ${title}`;
  return { code: 'unknown', title: 'It is not known whether the request was executed', status: 0, detail };
}

export function reasonOf(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { message?: string } };
  return [message, cause?.message].filter(Boolean).join(': ') || String(error);
}

/** In milliseconds. Gateways give a date too, by their own clock, which a browser of another origin does not see. */
function retryAfter({ headers }: Response): number {
  const value = headers.get('retry-after') ?? '0';
  const seconds = Number(value);
  const ms = Number.isNaN(seconds)
    ? Date.parse(value) - (Date.parse(headers.get('date') ?? '') || Date.now())
    : seconds * 1_000;
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}

/** Rejects with the signal's reason. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    // A signal that is aborted already tells nobody any more.
    if (signal?.aborted) return reject(signal.reason);
    const end = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', end);
        resolve();
      },
      Math.min(ms, MAX_TIMER_MS),
    );
    signal?.addEventListener('abort', end, { once: true });
  });
}

/** The value, once it is there. Rejects with the signal's reason if that is aborted before. */
function unlessAborted<T>(value: T | Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => reject(signal.reason);
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    Promise.resolve(value).then(resolve, reject);
  });
}

/** Milliseconds on a clock that never steps. */
function now(): number {
  return performance.now();
}
