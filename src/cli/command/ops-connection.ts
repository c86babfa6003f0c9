/** Requests to a node's ops port. It turns the problems that the node answers into errors. */
import { Agent, type Dispatcher, request } from 'undici';
import type { Config } from '../../config/config.ts';
import { OPERATION_DEADLINE_MS } from '../../config/ops-deadlines.ts';
import { findOpsToken, opsTokenFile } from '../../config/ops-token.ts';
import { httpUrl, reachableHost } from '../../config/values/hosts.ts';
import type { SaleState } from '../../engine/contract.ts';
import { InvalidInput, StockadeError } from '../../engine/errors.ts';
import { OrdersDiffer, SaleDeleting } from '../../operations/delete-operations.ts';
import type { OrderStatus } from '../../operations/order-operations.ts';
import {
  InsufficientStock,
  SaleArchived,
  SaleExists,
  UnknownSale,
  WrongState,
} from '../../operations/sale-operations.ts';
import { invokedAs } from '../terminal/invoked-as.ts';

const CONNECT_TIMEOUT_MS = 3_000;
/** Time beyond the node's own deadline, after which it answers with a reason. It bounds the wait for a node that hangs. */
const ANSWER_MARGIN_MS = 10_000;

/** Nothing answers at the ops port, or something that is not a Stockade node. */
export class NoNode extends StockadeError {
  constructor(message: string, cause?: unknown) {
    super('no_node', message, { cause });
  }
}

/** The node did not accept the token. */
export class TokenRefused extends StockadeError {
  constructor(message: string) {
    super('token_refused', message);
  }
}

export interface Problem {
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly faults?: readonly { field: string; problem: string }[];
  /** With `wrong_state`: the state that the sale is in. */
  readonly state?: SaleState;
  /** With `insufficient_stock`: units that are unsold. */
  readonly remaining?: number;
  /** With `orders_differ`: orders of the sale. */
  readonly orders?: number;
  /** With `wrong_status`: the order's status. */
  readonly orderStatus?: OrderStatus | 'accepted';
  /** With `expired`: whether a refund is due. */
  readonly refundDue?: boolean;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  /** The sale that errors name. */
  readonly saleId?: string;
  /** How an error names the change if it can't be made: "it can't be paused". */
  readonly wanted?: string;
  /** How many orders the request names, for its error. */
  readonly orders?: number;
  /** The operator's name, for the ledger. */
  readonly operator?: string;
  /** The node's deadline for this call; OPERATION_DEADLINE_MS if absent. */
  readonly deadlineMs?: number;
}

export function opsUrlOf({
  opsUrl,
  opsHost,
  opsPort,
}: Pick<Config, 'opsUrl' | 'opsHost' | 'opsPort'>): string {
  return opsUrl ? opsUrl.reveal().replace(/\/+$/, '') : httpUrl(reachableHost(opsHost), opsPort);
}

export class OpsConnection {
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #tokenSource: string;
  readonly #withoutNode: string | undefined;
  readonly #agent = new Agent({
    connect: { timeout: CONNECT_TIMEOUT_MS },
    bodyTimeout: ANSWER_MARGIN_MS,
  });

  /** @param withoutNode how the command works without a node, for an error: "set …"; missing: not at all */
  constructor(config: Config, withoutNode?: string) {
    this.#withoutNode = withoutNode;
    this.#url = opsUrlOf(config);
    this.#token = findOpsToken(config);
    this.#tokenSource = config.opsToken ? 'OPS_TOKEN' : opsTokenFile(config);
  }

  /** For messages: without a user and password. */
  get shownUrl(): string {
    return withoutUser(this.#url);
  }

  /** Gives up requests under way: a node that hangs must not hold up a command that is over. */
  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** @throws NoNode, TokenRefused, and the errors of the operations by their codes */
  async call<T>(call: Call): Promise<T> {
    const { status, body } = await this.send(call);
    if (status >= 200 && status < 300 && body !== undefined) return body as T;
    throw this.errorFrom(call, status, body as Problem | undefined);
  }

  /** The answer with any status; its `body` is `undefined` if it is not JSON. @throws NoNode */
  async send(call: Call): Promise<{ status: number; body: unknown }> {
    try {
      const answer = await this.#request(call, 'application/json');
      return { status: answer.statusCode, body: parseJson(await answer.body.text()) };
    } catch (error) {
      throw this.#unreachable(error);
    }
  }

  /** The data of each event of a stream, until the node or the signal ends it. @throws as `call` */
  async *events(call: Call, signal: AbortSignal): AsyncGenerator<string> {
    let text = '';
    try {
      for await (const chunk of this.#chunks(call, 'text/event-stream', signal)) {
        const events = `${text}${chunk}`.split('\n\n');
        text = events.pop()!;
        for (const event of events) yield dataOf(event);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** A long answer in pieces, as they come. @throws as `call`; also if the node ends the answer before it is complete */
  text(call: Call): AsyncGenerator<string> {
    return this.#chunks(call, 'application/x-ndjson');
  }

  async *#chunks(call: Call, accept: string, signal?: AbortSignal): AsyncGenerator<string> {
    try {
      const { statusCode, body } = await this.#request(call, accept, signal);
      if (statusCode !== 200) {
        throw this.errorFrom(call, statusCode, parseJson(await body.text()) as Problem | undefined);
      }
      for await (const chunk of body.setEncoding('utf8')) yield chunk as string;
    } catch (error) {
      throw error instanceof StockadeError ? error : this.#unreachable(error);
    }
  }

  #request(
    { method, path, body, operator, deadlineMs = OPERATION_DEADLINE_MS }: Call,
    accept: string,
    signal?: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    return request(`${this.#url}${path}`, {
      dispatcher: this.#agent,
      headersTimeout: deadlineMs + ANSWER_MARGIN_MS,
      ...(signal && { signal }),
      method,
      headers: {
        accept,
        ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(operator === undefined ? {} : { 'x-operator': operator }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
  }

  #unreachable(error: unknown): NoNode {
    const code = (error as { code?: string }).code;
    const found =
      code === 'ECONNREFUSED' ? 'nothing listens' : `no node answers (${(error as Error).message || code})`;
    return new NoNode(
      `${found} at ${this.shownUrl}. Start a node with \`${invokedAs()} serve\`, or name a running one with --ops-url or OPS_URL` +
        (this.#withoutNode === undefined ? '' : `, or ${this.#withoutNode} to work without a node`),
    );
  }

  /** The error that an unsuccessful answer means. */
  errorFrom(
    { saleId = '', wanted = 'changed', orders = 0, body }: Call,
    status: number,
    problem: Problem | undefined,
  ): StockadeError {
    const detail = problem?.detail ?? problem?.title ?? `the answer was ${status}`;
    if (status === 401 || status === 403) return new TokenRefused(this.#aboutToken(problem));
    if (problem?.code === undefined) {
      return new NoNode(
        `the server at ${this.shownUrl} is not a Stockade node: it answered with status ${status}`,
      );
    }
    switch (problem.code) {
      case 'not_found':
      case 'method_not_allowed':
        return this.wrongPort();
      case 'unknown_sale':
        return new UnknownSale(saleId);
      case 'sale_exists':
        return new SaleExists(saleId);
      case 'deleting':
        return new SaleDeleting(saleId);
      case 'orders_differ':
        return new OrdersDiffer(saleId, problem.orders ?? 0, orders);
      case 'archived':
        return new SaleArchived(saleId);
      case 'wrong_state':
        return problem.state
          ? new WrongState(saleId, problem.state, wanted)
          : new StockadeError('wrong_state', detail);
      case 'insufficient_stock':
        return new InsufficientStock(saleId, wantedUnits(body), problem.remaining ?? 0);
      case 'invalid_request':
        return new InvalidInput(
          'the request is not valid',
          problem.faults ?? [{ field: 'it', problem: detail }],
        );
      default:
        return new StockadeError(problem.code, detail);
    }
  }

  /** The error of an answer that no ops port of this version gives. */
  wrongPort(): NoNode {
    return new NoNode(
      `${this.shownUrl} does not know this request: it is a node's public port, or the node has another version. Name the ops ` +
        'port with --ops-url or OPS_URL',
    );
  }

  #aboutToken({ detail = '' }: Problem = {}): string {
    const where = `the node at ${this.shownUrl}`;
    // The public port asks for the name of a buyer.
    if (detail.includes('X-Buyer-Id'))
      return `${where} answers at its public port, which is for buyers: name the ops port with --ops-url or OPS_URL`;
    return this.#token === undefined
      ? `${where} requires a token, and there is none in ${this.#tokenSource}: set OPS_TOKEN or DATA_DIR as that node has it`
      : `${where} refuses the token in ${this.#tokenSource}: set OPS_TOKEN or DATA_DIR as that node has it`;
  }
}

const dataOf = (event: string) =>
  event
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice('data: '.length))
    .join('\n');

const wantedUnits = (body: unknown) => Number((body as { units?: unknown } | undefined)?.units ?? 0);

function withoutUser(text: string): string {
  const url = new URL(text);
  return `${url.origin}${url.pathname === '/' ? '' : url.pathname}`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
