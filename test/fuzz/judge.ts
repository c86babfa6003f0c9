/** Checks that hold for every answer, and checks that hold for the answer to a valid request. */
import { METHODS } from 'node:http';
import type { ApiDescription, Operation } from './description.ts';
import type { ReadAnswer } from './wire.ts';

/** Signs of internal details: stack traces, file paths, SQL, Redis errors. */
const LEAK =
  /\bat \S+ \(|node_modules|\/(?:src|dist)\/|\.[jt]s:\d|\b(?:SELECT|INSERT|UPDATE|DELETE) \S+ (?:FROM|INTO|SET)\b|syntax error|ReplyError|WRONGTYPE|NOSCRIPT|EVALSHA|redis\.call|knex|relation "|violates|invalid input syntax|out of range for type|invalid byte sequence|ECONN|Cannot read prop|is not a function|undefined/;

/** Statuses with which the HTTP server itself answers, before there is a request. */
const LIBRARY_STATUSES = [400, 431, 505];

/** @returns why the answer is wrong; `undefined` if it is not */
export function objection(api: ApiDescription, answer: ReadAnswer, toHead = false): string | undefined {
  const { status, body, headers } = answer;
  if (status === 500) return 'the answer is 500';
  if (toHead) return body === '' ? undefined : 'the answer to HEAD has a body';
  const leak = LEAK.exec(body.replaceAll('invalid_request', ''));
  if (leak) return `the body says ${JSON.stringify(leak[0])}`;
  if (!headers.has('content-type'))
    return LIBRARY_STATUSES.includes(status) || body === '' ? undefined : `${status} has no content-type`;
  if (headers.get('content-type') !== 'application/problem+json') {
    return status < 400 || status === 503
      ? undefined
      : `${status} is not a problem answer but ${headers.get('content-type')}`;
  }
  const problem = parsed(body);
  const misfit = api.misfit(problem, { $ref: '#/components/schemas/Problem' });
  if (misfit !== undefined) return `the problem is not as described: ${misfit}`;
  const { code, status: said } = problem as { code: string; status: number };
  if (!api.codes.includes(code)) return `the code ${code} is not described`;
  if (code === 'internal') return 'the code is internal';
  return said === status ? undefined : `the problem names the status ${said}, the status line ${status}`;
}

/** As `objection`, for the answer to a valid request. */
export function objectionTo(
  api: ApiDescription,
  { method, path }: { readonly method: string; readonly path: string },
  answer: ReadAnswer,
): string | undefined {
  const general = objection(api, answer);
  if (general !== undefined) return general;
  const { status, body } = answer;
  const onPath = operationsAt(api, path);
  const operation = onPath.find((one) => one.method === method);
  if (!operation) {
    // After a method that it does not know, or one for proxies, a server need not read on.
    if (status === 400 && (method === 'CONNECT' || !METHODS.includes(method))) return undefined;
    const wanted = onPath.length > 0 ? 405 : 404;
    return status === wanted ? undefined : `${status} instead of ${wanted}: there is no such route`;
  }
  const problemCodes = operation.codes.get(status);
  const schema = operation.answers.get(status);
  if (answer.headers.get('content-type') === 'application/problem+json') {
    const { code } = parsed(body) as { code: string };
    const codes = problemCodes ?? [];
    return codes.includes(code) ? undefined : `${operation.id} is not described to answer ${status} ${code}`;
  }
  if (!operation.answers.has(status)) return `${operation.id} is not described to answer ${status}`;
  return schema && api.misfit(parsed(body), schema);
}

/** The operations at an address, found as the server does: fixed segments before parameters. */
function operationsAt(api: ApiDescription, path: string): readonly Operation[] {
  const parts = path.split('/');
  const fitting = api.operations.filter((operation) => {
    const of = operation.path.split('/');
    return (
      of.length === parts.length &&
      of.every((part, i) => part === parts[i] || (part.startsWith('{') && parts[i] !== ''))
    );
  });
  const literal = fitting.filter((operation) => operation.path === path);
  return literal.length > 0 ? literal : fitting;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
