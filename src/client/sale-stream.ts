/**
 * Follows a sale, or a place in its queue, by server-sent events, over as many connections as it takes.
 *
 *   connect ──event `sale` or `place`─────────────────> an update
 *     │     ──event `end`, or no such sale────────────> the last update
 *     │     ──the connection breaks, or is silent─────> one update `interrupted`, pause, connect again
 *     │     ──event `unavailable`: the node knows no──> the same: another node may know more
 *     │       more how the place stands
 *     └──refused for now: busy, too many requests …───> the same, with a pause as long as Retry-After says
 *
 * The pause doubles with each attempt that brings no event, up to half a minute. It is random, so that the listeners of a node
 * that stops do not all come to the next one at once.
 *
 * It reads the answer of `fetch` and not an EventSource: that one can't send a header, ends for good after a refusal, and does
 * not notice a connection that is dead.
 */
import {
  type Operations,
  type Place,
  type Problems,
  type PublicSale,
  ROUTES,
} from './generated/buyers-api.ts';
import type { Refusal } from './outcome.ts';
import {
  joined,
  type Opened,
  pause,
  type Route,
  reasonOf,
  type Transport,
  UnexpectedAnswer,
} from './transport.ts';

export type SaleUpdate =
  /** The state of the sale now. */
  | { readonly code: 'found'; readonly sale: PublicSale }
  /** What was told before may be out of date. The client connects again; the next update is `found` if it succeeds. */
  | { readonly code: 'interrupted'; readonly detail: string }
  /** The last one: the sale was closed, or, with `unknown_sale`, archived or deleted. */
  | { readonly code: 'ended'; readonly reason: 'closed' | 'unknown_sale' }
  /** The last one: a refusal that would come again. */
  | Refusal<Problems, Exclude<Operations['followSale']['code'], (typeof FOR_NOW)[number]>>;

export type PlaceUpdate =
  /** How the place stands now. */
  | { readonly code: 'found'; readonly place: Place }
  /** As of a sale. */
  | { readonly code: 'interrupted'; readonly detail: string }
  /** The last one: the place waits no more and has no offer, or there is no such place or sale any more. */
  | { readonly code: 'ended'; readonly reason: Place['state'] | 'no_place' | 'unknown_sale' }
  /** The last one: a refusal that would come again. */
  | Refusal<Problems, Exclude<Operations['followPlace']['code'], (typeof FOR_NOW)[number]>>;

/** Refusals after which a later request may succeed. */
const FOR_NOW = ['busy', 'unavailable', 'internal', 'rate_limited'] as const;
/** The node sends something every few seconds. After this time without, the connection is taken for dead. */
const SILENCE_MS = 15_000;
/** Until the node has said how long to wait. */
const RETRY_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
const PAUSE_FACTOR = 2;
/** A state of a sale has some hundred characters. */
const MAX_EVENT_CHARACTERS = 100_000;

interface StreamEvent {
  readonly event?: string;
  readonly data?: string;
  readonly retry?: string;
}

export function followSale(
  transport: Transport,
  saleId: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<SaleUpdate, void> {
  const stream = { route: ROUTES.followSale, params: { saleId }, kind: 'sale' } as const;
  return follow<SaleUpdate>(transport, stream, signal);
}

/** @param placeToken of an earlier answer; without it, the node has to read Postgres. Later connections send the newest one */
export function followPlace(
  transport: Transport,
  { saleId, placeToken }: { readonly saleId: string; readonly placeToken: string | undefined },
  signal: AbortSignal | undefined,
): AsyncGenerator<PlaceUpdate, void> {
  const headers = placeToken === undefined ? {} : { 'place-token': placeToken };
  const stream = { route: ROUTES.followPlace, params: { saleId }, headers, kind: 'place' } as const;
  return follow<PlaceUpdate>(transport, stream, signal);
}

interface Stream {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Of its events, and of what an update has. */
  readonly kind: 'sale' | 'place';
}

async function* follow<Update extends SaleUpdate | PlaceUpdate>(
  transport: Transport,
  stream: Stream,
  signal: AbortSignal | undefined,
): AsyncGenerator<Update, void> {
  // They throw if the id is missing, or a header can't be sent. The loop would try again and again.
  transport.urlOf(stream);
  joined(stream.headers);
  let { headers } = stream;
  let retryMs = RETRY_MS;
  let failures = 0;
  for (let isInterrupted = false; ; failures++) {
    signal?.throwIfAborted();
    const connection = new Connection(signal);
    let detail = 'the stream has ended';
    let waitMs = 0;
    try {
      const opened = await connection.open(transport, { ...stream, headers });
      if (!opened.ok) {
        const { problem } = opened;
        if (!(FOR_NOW as readonly string[]).includes(problem.code)) return yield problem as never;
        detail = problem.detail ?? problem.title;
        waitMs = opened.retryAfterMs;
      } else {
        for await (const { event, data, retry } of eventsIn(opened.body, connection)) {
          // Browsers pass over what is not a number of digits, too.
          if (retry !== undefined && /^\d+$/.test(retry)) retryMs = Number(retry) || retryMs;
          if (event === 'unavailable') {
            detail = 'the node does not know now how the place stands';
            break;
          }
          if (event !== stream.kind && event !== 'end') continue;
          const value = JSON.parse(data ?? '');
          if (event === 'end') return yield { code: 'ended', reason: value.reason } as Update;
          [failures, isInterrupted] = [0, false];
          // It spares the node a read. The token before may be signed with a key that the shop gives up soon.
          if (value.placeToken !== undefined) headers = { 'place-token': value.placeToken };
          yield { code: 'found', [stream.kind]: value } as unknown as Update;
        }
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof UnexpectedAnswer) throw error;
      detail = reasonOf(error);
    } finally {
      connection.close();
    }
    if (!isInterrupted) yield { code: 'interrupted', detail } as Update;
    isInterrupted = true;
    const pauseMs = Math.min(retryMs * PAUSE_FACTOR ** failures, MAX_PAUSE_MS);
    await pause(Math.max(waitMs, pauseMs * (0.5 + Math.random() / 2)), signal);
  }
}

/** One connection. It is closed by its reader, by the caller's signal, or after a silence. */
class Connection {
  readonly #controller = new AbortController();
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#controller.abort(this.#signal?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.listens();
  }

  open(transport: Transport, { route, params, headers }: Stream): Promise<Opened> {
    const request = { route, params, ...(headers && { headers }), repeatable: true, changes: false };
    return transport.open(request, this.#controller.signal);
  }

  /** Something has come. Until its reader listens again, silence means nothing. */
  heard(): void {
    clearTimeout(this.#timer);
  }

  listens(): void {
    clearTimeout(this.#timer);
    const silent = new Error(`nothing came for ${SILENCE_MS / 1_000} s`);
    this.#timer = setTimeout(() => this.#controller.abort(silent), SILENCE_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#controller.abort();
  }
}

/** @param connection is told when something is waited for, and of whatever comes, comments too */
async function* eventsIn(
  body: ReadableStream<Uint8Array>,
  connection: Pick<Connection, 'listens' | 'heard'>,
): AsyncGenerator<StreamEvent, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let fields: Record<string, string> = {};
  let rest = '';
  for (;;) {
    connection.listens();
    const { done, value } = await reader.read();
    connection.heard();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = lines.pop()!;
    if (rest.length > MAX_EVENT_CHARACTERS) throw new Error('an event is too long');
    for (const line of lines) {
      // A text may have characters that end a line for a regular expression, and not for JSON.
      const [, name, text] = /^(\w+): ?(.*?)\r?$/s.exec(line) ?? [];
      // A gateway may have divided the data at its line breaks.
      if (name === 'data' && fields.data !== undefined) fields.data += `\n${text}`;
      else if (name !== undefined) fields[name] = text!;
      if (line !== '' && line !== '\r') continue;
      yield fields;
      fields = {};
    }
  }
}
