/**
 * Generates requests: made from the description of a port, then corrupted. They are plain data, so that fast-check
 * can shrink and print them.
 */
import fc from 'fast-check';
import type { ApiDescription, Operation, PortName } from './description.ts';
import { bodies } from './values.ts';

/** How the bytes of a request are sent. */
export type Framing =
  | { readonly kind: 'whole' }
  /** In pieces of this many bytes. */
  | { readonly kind: 'pieces'; readonly bytes: number }
  | { readonly kind: 'chunked'; readonly bytes: number }
  /** The connection ends, or breaks, after this share of the bytes. */
  | { readonly kind: 'abort'; readonly share: number; readonly reset: boolean }
  /** The next request follows without waiting for the answer. */
  | { readonly kind: 'pipelined' }
  /** A malformed request. Only the checks for all answers apply. */
  | { readonly kind: 'broken'; readonly how: string };

export interface RequestSpec {
  readonly port: PortName;
  readonly method: string;
  /** `{sale:N}` and `{order:N}` stand for a sale or an order that exists. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | undefined;
  readonly framing: Framing;
}

/** Requests on one connection, in sequence. */
export interface Session {
  readonly port: PortName;
  readonly requests: readonly RequestSpec[];
}

/** Few sales and buyers, so that requests of different sessions affect each other. */
export const SALES = 8;
const BUYERS = 12;

const ODD_SEGMENTS = [
  ...[
    '%',
    '%zz',
    '%00',
    '%2e%2e',
    '%2F',
    '..',
    '.',
    '*',
    ':',
    '{a}',
    '-',
    '__proto__',
    'constructor',
    'nobody',
  ],
  ...[
    'x'.repeat(65),
    'x'.repeat(1_000),
    'x'.repeat(9_000),
    '\0',
    'a\0b',
    '\x7f',
    '\u00ff',
    'caf\u00c3\u00a9',
    '\t',
  ],
  ...[
    '0',
    '1',
    '-1',
    '9223372036854775807',
    '9223372036854775808',
    '1'.repeat(400),
    '0x1',
    '1e3',
    "'--",
    '$1',
  ],
];
const ODD_TARGETS = [
  ...[
    '*',
    '/',
    '//',
    '/v1',
    '/v1/sales//orders',
    '/v1/../metrics',
    '/%76%31/sales',
    'http://a/v1/sales',
    'v1/sales',
  ],
  ...['/v1/orders/1/explode', `/${'a/'.repeat(500)}`, '/v1/sales/a/orders/', '/?', '/\\', '/v1/sales#a', ''],
];
const QUERIES = [
  ...[
    '',
    '?',
    '?a',
    '?saleId=',
    '?saleId=%00',
    '?saleId=%zz',
    '?saleId=\u00ff',
    '?saleId=a&saleId=b',
    '?saleId={sale:0}',
  ],
  ...[
    `?${'a=b&'.repeat(500)}`,
    '?saleId=%F0%9F%92%A9',
    '?__proto__=1',
    `?saleId=${'x'.repeat(2_000)}`,
    '?saleId=a%0Ab',
  ],
];
const METHODS = [
  'GET',
  'POST',
  'PATCH',
  'PUT',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'get',
  'BREW',
  'X'.repeat(300),
];
const ODD_VALUES = [
  '',
  ' ',
  'a b',
  'caf\u00c3\u00a9',
  '\u00ff',
  'x'.repeat(129),
  'x'.repeat(3_000),
  'x'.repeat(9_000),
  'a\x7f',
  '"',
  'retake:1',
];
const ODD_HEADERS: readonly (readonly [string, string])[] = [
  ...(
    ['text/html', 'application/x-www-form-urlencoded', 'application/json; charset=utf-16', ''] as const
  ).map((type) => ['Content-Type', type] as const),
  ...[
    ['Expect', '100-continue'] as const,
    ['Connection', 'close'] as const,
    ['Upgrade', 'websocket'] as const,
  ],
  ...[
    ['Accept-Encoding', 'gzip, br'] as const,
    ['X-Forwarded-For', '1.2.3.4'] as const,
    ['Cookie', 'a=b'] as const,
  ],
  ...[
    ['Content-Encoding', 'gzip'] as const,
    ['X-HTTP-Method-Override', 'DELETE'] as const,
    ['Range', 'bytes=0-'] as const,
    ['If-None-Match', '*'] as const,
  ],
  ['X-Many', 'y'.repeat(2_000)],
];
const BROKEN = [
  ...[
    'two lengths',
    'length and chunks',
    'wrong length',
    'length that is no number',
    'negative length',
    'huge length',
  ],
  ...[
    'no host',
    'two hosts',
    'bare newlines',
    'space before colon',
    'folded header',
    'many headers',
    'no version',
  ],
  ...[
    'version 9',
    'no colon',
    'NUL in a header',
    'bad chunk size',
    'chunk without end',
    'huge chunk',
    'garbage',
    'TLS',
  ],
  ...[
    'proxy preamble',
    'HTTP/2 preface',
    'te: identity',
    'te twice',
    'newline in the path',
    'empty lines first',
  ],
];

const weighted = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });

function targets(operation: Operation): fc.Arbitrary<string> {
  const sale = fc.oneof(
    weighted(
      9,
      fc.nat(SALES - 1).map((i) => `{sale:${i}}`),
    ),
    weighted(1, fc.constantFrom(...ODD_SEGMENTS)),
  );
  const order = fc.oneof(
    weighted(
      6,
      fc.nat(9).map((i) => `{order:${i}}`),
    ),
    weighted(1, fc.constantFrom(...ODD_SEGMENTS)),
  );
  const code = fc.constantFrom('sold_out', 'unavailable', 'unheard_of', '__proto__');
  const path = fc.tuple(sale, order, code).map(([saleId, orderId, problemCode]) =>
    operation.path
      .replace('{saleId}', saleId)
      .replace('{file}', 'console.css')
      .replace('{code}', problemCode)
      .replace(/\{(orderId|id)\}/, orderId),
  );
  const query = fc.oneof(weighted(8, fc.constant('')), weighted(1, fc.constantFrom(...QUERIES)));
  const right = fc.tuple(path, query).map((parts) => parts.join(''));
  return fc.oneof(weighted(20, right), weighted(1, fc.constantFrom(...ODD_TARGETS)));
}

function headers(port: PortName): fc.Arbitrary<(readonly [string, string])[]> {
  const named = (name: string, good: fc.Arbitrary<string>) =>
    fc
      .oneof(weighted(10, good), weighted(1, fc.constantFrom(...ODD_VALUES)))
      .map((value) => [name, value] as const);
  const who = named(
    'X-Buyer-Id',
    fc.nat(BUYERS - 1).map((i) => `buyer-${i}`),
  );
  const key = named(
    'Idempotency-Key',
    // Bare and as a string: the same key.
    fc.nat(40).map((i) => (i % 2 === 0 ? `key-${i >> 1}` : `"key-${i >> 1}"`)),
  );
  const prefer = named('Prefer', fc.constantFrom('respond-async', 'wait=1, respond-async', 'x'));
  const token = named(
    'Authorization',
    fc.oneof(
      weighted(12, fc.constant('{token}')),
      weighted(1, fc.constantFrom('Bearer x', 'Bearer', 'Basic {token}')),
    ),
  );
  const operator = named('X-Operator', fc.constantFrom('ann', 'the night shift'));
  const odd = fc.array(fc.constantFrom(...ODD_HEADERS), { maxLength: 2 });
  const maybe = <T>(arbitrary: fc.Arbitrary<T>, freq = 3) => fc.option(arbitrary, { nil: undefined, freq });
  const seldom = <T>(arbitrary: fc.Arbitrary<T>) =>
    fc.oneof(weighted(15, fc.constant(undefined)), weighted(1, arbitrary));
  const usual =
    port === 'public'
      ? fc.tuple(maybe(who, 15), maybe(key, 1), maybe(prefer, 1), seldom(who))
      : fc.tuple(maybe(token, 15), maybe(operator, 1), seldom(token));
  return fc
    .tuple(usual, fc.oneof(weighted(5, fc.constant([])), weighted(1, odd)))
    .map(([known, others]) => [...known.filter((header) => header !== undefined), ...others]);
}

const framings: fc.Arbitrary<Framing> = fc.oneof(
  weighted(20, fc.constant({ kind: 'whole' as const })),
  weighted(3, fc.record({ kind: fc.constant('pieces' as const), bytes: fc.constantFrom(1, 7, 60, 200) })),
  weighted(3, fc.record({ kind: fc.constant('chunked' as const), bytes: fc.constantFrom(1, 5, 100_000) })),
  weighted(
    2,
    fc.record({
      kind: fc.constant('abort' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      reset: fc.boolean(),
    }),
  ),
  weighted(2, fc.constant({ kind: 'pipelined' as const })),
  weighted(2, fc.record({ kind: fc.constant('broken' as const), how: fc.constantFrom(...BROKEN) })),
);

function requestsOf(api: ApiDescription, operation: Operation): fc.Arbitrary<RequestSpec> {
  const right = operation.body ? bodies(api, operation.body.schema) : fc.constant(undefined);
  const body = operation.body?.required ? right : fc.option(right, { nil: undefined, freq: 2 });
  return fc.record({
    port: fc.constant(operation.port),
    method: fc.oneof(weighted(25, fc.constant(operation.method)), weighted(1, fc.constantFrom(...METHODS))),
    target: targets(operation),
    headers: headers(operation.port),
    body,
    framing: framings,
  });
}

/** Operations that change state come more often, because deep states need many of them. */
const OFTEN = new Set(['buy', 'payOrder', 'cancelOrder', 'changeSale']);
const SELDOM = new Set(['recover', 'resendAll']);
/** Their answers never end, so they are left out. */
const ENDLESS = new Set(['consoleEvents', 'followSale']);

export function sessions(apis: Readonly<Record<PortName, ApiDescription>>): fc.Arbitrary<Session> {
  const of = (port: PortName) => {
    const ending = apis[port].operations.filter(({ id }) => !ENDLESS.has(id));
    const requests = ending.map((operation) =>
      weighted(
        OFTEN.has(operation.id) ? 12 : SELDOM.has(operation.id) ? 1 : 3,
        requestsOf(apis[port], operation),
      ),
    );
    return fc.record({
      port: fc.constant(port),
      requests: fc.array(fc.oneof(...requests), { minLength: 1, maxLength: 8 }),
    });
  };
  return fc.oneof(weighted(3, of('public')), weighted(2, of('ops')));
}
