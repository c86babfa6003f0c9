/**
 * `POST /v1/sales/{saleId}/tokens`: issues a purchase token, after the buyer has solved the challenge if there is one.
 *
 *   authenticate the buyer -> find the sale -> window open? -> issue a challenge, or check the answer to one -> token
 *
 * Three steps may wait: for a key set, for the sale directory, for the shop's own challenge. They share one deadline.
 *
 * No buyer gets a token before the window opens, unless the sale has a queue: there a token is needed for a place, and places are
 * given before. After that, every buyer that solves the challenge gets one, also when the sale is sold out, paused or over: a
 * purchase that is repeated to learn its outcome needs a token too.
 */
import type { ChallengeCaller, ChallengeReply } from '../../admission/challenge.ts';
import type { PurchaseTokens } from '../../admission/purchase-token.ts';
import type { SaleRecord } from '../../engine/contract.ts';
import { SALE_ID_PATTERN } from '../../engine/limits.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { type Authenticate, type Identity, refusal } from '../identity/identity.ts';
import { type Body, MAX_BODY_BYTES } from '../server/body.ts';
import type { Handler, Observer } from '../server/exchange.ts';
import { failure } from '../server/failure.ts';
import { pathIdOf } from '../server/http-request.ts';
import { parseObject, unknownField } from '../server/json-object.ts';
import { problem } from '../server/replies/problem.ts';
import type { ProblemCode } from '../server/replies/problem-kinds.ts';
import { json, type Reply } from '../server/replies/reply.ts';

export interface TokenHost extends Observer {
  readonly authenticate: Authenticate;
  readonly tokens: PurchaseTokens;
  /** `undefined`: every buyer gets a token. */
  readonly challenge: ChallengeCaller | undefined;
  /** The sale's record as this node knows it. @throws Busy */
  readRecord(saleId: string): Promise<SaleRecord | undefined>;
  /** A request is answered within this time after all of it has arrived. */
  readonly readDeadlineMs: number;
  /** Called with the outcome of each request for a token. */
  tokenAnswered(outcome: TokenOutcome): void;
}

export type TokenOutcome = ProblemCode | 'issued';

/** The answer to a captcha is longer than an order. */
const MAX_ANSWER_BYTES = 16_384;
const UNREADABLE = { detail: 'The sale can’t be read now. Send the request again.' };
const UNREAD = { detail: 'The sale was not read. Send the request again.' };
const UNKNOWN_BUYER = { detail: 'The buyer could not be authenticated in time. Send the request again.' };

export function tokenRoute(host: TokenHost): Handler {
  return (exchange, request) => {
    const saleId = pathIdOf(request);
    const identity = host.authenticate(request);
    exchange.readBody(
      request,
      async (body) => {
        const { outcome, reply } = await answerTo(host, saleId, identity, body);
        exchange.reply(reply);
        host.tokenAnswered(outcome);
      },
      host.challenge ? MAX_ANSWER_BYTES : MAX_BODY_BYTES,
    );
  };
}

interface Answer {
  readonly outcome: TokenOutcome;
  readonly reply: Reply;
}

async function answerTo(
  host: TokenHost,
  saleId: string,
  identity: ReturnType<Authenticate>,
  body: Body,
): Promise<Answer> {
  if ('refused' in body) return { outcome: body.code, reply: body.refused };
  const deadline = monotonicMs() + host.readDeadlineMs;
  const leftMs = () => Math.max(0, deadline - monotonicMs());
  const who = identity instanceof Promise ? await inTime(leftMs(), identity) : identity;
  if (!who) return problemOf('unavailable', UNKNOWN_BUYER);
  if (!('buyerId' in who)) {
    const { code, reply } = refusal(who);
    return { outcome: code, reply };
  }
  const asked = parseAnswer(body.text);
  if (typeof asked === 'string') return problemOf('invalid_request', { detail: asked });
  const record = await read(host, saleId, leftMs());
  if (record === 'unavailable') return problemOf(record, UNREADABLE);
  if (record === 'busy') return problemOf(record, UNREAD);
  if (!record) return problemOf('unknown_sale');
  const { startsAt, queue } = record.sale;
  if (!queue && Date.now() < startsAt) {
    return problemOf('not_started', { startsAt: new Date(startsAt).toISOString() });
  }
  const holder = { saleId, buyerId: who.buyerId };
  const notPassed = await runChallenge(host, holder, asked, leftMs());
  if (notPassed) return notPassed;
  const { token, expiresAtMs } = host.tokens.issue(holder, record.generation);
  const expiresAt = new Date(expiresAtMs).toISOString();
  return { outcome: 'issued', reply: json(201, { token, saleId, expiresAt }) };
}

/** `authenticate` never rejects, so `undefined` means that the time is over. */
function inTime(timeoutMs: number, identity: Promise<Identity>): Promise<Identity | undefined> {
  return withTimeout(timeoutMs, identity).catch(() => undefined);
}

async function read(
  host: TokenHost,
  saleId: string,
  timeoutMs: number,
): Promise<SaleRecord | undefined | 'busy' | 'unavailable'> {
  if (!SALE_ID_PATTERN.test(saleId)) return undefined;
  try {
    return await withTimeout(timeoutMs, host.readRecord(saleId));
  } catch (error) {
    return failure(host, error, { busy: 'busy', failed: 'unavailable' });
  }
}

/** @returns the answer to a buyer that has not passed the challenge; `undefined` if it has */
async function runChallenge(
  { challenge: caller }: TokenHost,
  holder: { readonly saleId: string; readonly buyerId: string },
  { answer }: Asked,
  timeoutMs: number,
): Promise<Answer | undefined> {
  if (!caller) return undefined;
  return challengeAnswer(
    answer === undefined
      ? await caller.issue(holder, timeoutMs)
      : await caller.verify(answer, holder, timeoutMs),
  );
}

function challengeAnswer(reply: ChallengeReply): Answer | undefined {
  switch (reply.kind) {
    case 'passed':
      return undefined;
    case 'issued':
      return problemOf('challenge_required', {
        detail: 'Solve the challenge and send the solution as `answer`.',
        challenge: reply.challenge,
      });
    case 'failed':
      return problemOf('challenge_failed', {
        detail: 'Send the request without `answer` to get another challenge.',
      });
    case 'busy':
      return problemOf('busy', { detail: 'Too many challenges are being checked. Send the request again.' });
    case 'broken':
      return problemOf('unavailable', {
        detail: 'The challenge can’t be checked now. Send the request again.',
      });
  }
}

function problemOf(code: ProblemCode, more: Readonly<Record<string, unknown>> = {}): Answer {
  return { outcome: code, reply: problem(code, more) };
}

interface Asked {
  /** The client's answer to a challenge. `undefined`: the client asks for a challenge. */
  readonly answer: unknown;
}

/** @returns what is wrong with the body, as text, if it is not valid */
function parseAnswer(text: string): Asked | string {
  if (text === '') return { answer: undefined };
  const body = parseObject(text);
  if (typeof body === 'string') return body;
  return unknownField(body, ['answer'], 'a request for a token') ?? { answer: body.answer };
}
