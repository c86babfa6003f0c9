/** Wraps every operation of the ops port: checks the token, reads the body, and turns errors into problem answers. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { InvalidInput } from '../../engine/errors.ts';
import { parseActor } from '../../engine/sale/author.ts';
import { parseExactly } from '../../engine/sale/exact-json.ts';
import { unauthenticated } from '../identity/unauthenticated.ts';
import type { Exchange, Handler } from '../server/exchange.ts';
import { pathIdOf } from '../server/http-request.ts';
import type { PiecedReply, Reply } from '../server/replies/reply.ts';
import { failure, isFault } from './faults.ts';

const MAX_OPS_BODY_BYTES = 65_536;
/** The operator's name in the ledger if the request gives none. */
const UNNAMED_OPERATOR = 'ops token';

const TOKEN_FORM = 'Authorization must be "Bearer <OPS_TOKEN>"';
const NO_TOKEN = unauthenticated('Bearer', { reason: 'missing', detail: TOKEN_FORM });
const WRONG_TOKEN = unauthenticated('Bearer', { reason: 'invalid', detail: TOKEN_FORM });

/** A request to the ops port with the right token. */
export class OpsCall {
  /** The path's parameter; `''` if the path has none. */
  readonly id: string;
  /** The query of the address, not decoded. */
  readonly query: string;
  /** Parsed; `undefined` if the request has none. */
  readonly body: unknown;
  readonly #operator: string;

  constructor(id: string, query: string, operator: string, body?: unknown) {
    this.id = id;
    this.query = query;
    this.body = body;
    this.#operator = operator;
  }

  /** Who makes the change, for the ledger. @throws InvalidInput if the request gives a name that the ledger can't take */
  get actor(): string {
    return parseActor(this.#operator);
  }
}

export type Action = (call: OpsCall) => Promise<Reply | PiecedReply>;
/** With `optional` the body may be missing. */
export type Guarded = (action: Action, hasBody?: boolean | 'optional') => Handler;

/** What the guard needs of the process that serves the port. */
export interface GuardHost {
  readonly token: string;
  /** An operation has failed because of the process or its stores. */
  fault(error: unknown): void;
}

export function guard(host: GuardHost): Guarded {
  const expected = digest(`Bearer ${host.token}`);
  return (action, hasBody = false) =>
    (exchange, request) => {
      const id = pathIdOf(request);
      const query = request.getQuery();
      if (!timingSafeEqual(digest(request.getHeader('authorization')), expected)) {
        exchange.reply(request.getHeader('authorization') === '' ? NO_TOKEN : WRONG_TOKEN);
        return;
      }
      const operator = request.getHeader('x-operator') || UNNAMED_OPERATOR;
      if (!hasBody) return answer(host, exchange, () => action(new OpsCall(id, query, operator)));
      exchange.readBody(
        request,
        (body) => {
          if ('refused' in body) return exchange.reply(body.refused);
          const isMissing = hasBody === 'optional' && body.text === '';
          const call = () => new OpsCall(id, query, operator, isMissing ? undefined : parse(body.text));
          void answer(host, exchange, () => action(call()));
        },
        MAX_OPS_BODY_BYTES,
      );
    };
}

async function answer(host: GuardHost, exchange: Exchange, action: () => ReturnType<Action>): Promise<void> {
  try {
    exchange.reply(await action());
  } catch (error) {
    const reply = failure(error);
    exchange.reply(reply);
    if (isFault(error, reply)) host.fault(error);
  }
}

function parse(body: string): unknown {
  try {
    return parseExactly(body);
  } catch {
    throw new InvalidInput('the body is not valid', [{ field: 'body', problem: 'must be JSON' }]);
  }
}

function digest(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}
