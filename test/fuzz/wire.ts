/** Writes requests as bytes, and parses answers. */
import type { RequestSpec } from './requests.ts';

/** The sales and orders that placeholders stand for; see `RequestSpec.target`. */
export interface Names {
  sale(n: number): string;
  order(n: number): string;
  readonly token: string;
}

/** More pieces, each with its pause, would find no more. */
const MAX_PIECES = 100;

export interface Wired {
  readonly bytes: Buffer;
  /** The positions at which the request is cut into pieces. */
  readonly cuts: readonly number[];
  /** Whether the request is valid HTTP: then it must be answered as its description says. */
  readonly isSound: boolean;
}

function filled(text: string, names: Names): string {
  return text
    .replaceAll(/\{sale:(\d+)\}/g, (_, n) => names.sale(Number(n)))
    .replaceAll(/\{order:(\d+)\}/g, (_, n) => names.order(Number(n)))
    .replaceAll('{token}', `Bearer ${names.token}`);
}

/** The address that is sent, and the same without its query. */
export function pathOf(spec: RequestSpec, names: Names): string {
  return filled(spec.target, names).split('?')[0]!;
}

export function wire(spec: RequestSpec, names: Names): Wired {
  const { framing, body } = spec;
  const target = filled(spec.target, names);
  const given = spec.headers.map(([name, value]) => `${name}: ${filled(value, names)}`);
  const chunked = framing.kind === 'chunked' && body !== undefined;
  const length =
    body === undefined ? [] : [chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`];
  const lines = [`${spec.method} ${target} HTTP/1.1`, 'Host: localhost', ...given, ...length];
  const content = chunked ? chunks(body, framing.bytes) : (body ?? '');
  const text =
    framing.kind === 'broken'
      ? broken(framing.how, lines, body ?? '{}')
      : `${lines.join('\r\n')}\r\n\r\n${content}`;
  const bytes = Buffer.from(text, 'latin1');
  return {
    bytes: framing.kind === 'abort' ? bytes.subarray(0, Math.floor(bytes.length * framing.share)) : bytes,
    cuts: framing.kind === 'pieces' ? cutsOf(bytes, framing.bytes) : [],
    isSound: isSound(spec, target),
  };
}

/**
 * The first piece has the whole request line, because uWebSockets.js answers 505 to a request line that is cut before, within
 * or after its version (docs/known-gaps.md).
 */
function cutsOf(bytes: Buffer, apart: number): number[] {
  const cuts: number[] = [];
  const step = Math.max(apart, Math.ceil(bytes.length / MAX_PIECES));
  for (let at = bytes.indexOf('\n') + 1; at < bytes.length; at += step) cuts.push(at);
  return cuts;
}

/**
 * Whether the request is valid HTTP and within the server's own bounds, whose excess it need not answer with a
 * problem.
 */
function isSound({ method, headers, framing, body }: RequestSpec, target: string): boolean {
  const values = headers.map(([, value]) => value).join('');
  return (
    framing.kind !== 'broken' &&
    // These are refused, and the connection is closed.
    framing.kind !== 'chunked' &&
    framing.kind !== 'abort' &&
    /^[A-Z]{1,20}$/.test(method) &&
    /^\/[\x21-\x7e]*$/.test(target) &&
    !/[^\x20-\x7e]/.test(values) &&
    target.length + values.length < 3_500 &&
    !(body !== undefined && ['GET', 'HEAD', 'CONNECT', 'TRACE'].includes(method)) &&
    !headers.some(([name]) => name === 'Expect' || name === 'Upgrade')
  );
}

function chunks(body: string, bytes: number): string {
  let text = '';
  const size = Math.max(bytes, Math.ceil(body.length / MAX_PIECES));
  for (let at = 0; at < body.length; at += size) {
    const part = body.slice(at, at + size);
    text += `${part.length.toString(16)}\r\n${part}\r\n`;
  }
  return `${text}0\r\n\r\n`;
}

function broken(how: string, lines: readonly string[], body: string): string {
  const [first = '', host = '', ...others] = lines;
  const rest = others.filter((line) => !/^(Content-Length|Transfer-Encoding):/i.test(line));
  const length = `Content-Length: ${body.length}`;
  const request = (head: readonly string[], content = body, end = '\r\n') =>
    `${head.join(end)}${end}${end}${content}`;
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
  switch (how) {
    case 'two lengths':
      return request([first, host, ...rest, length, `Content-Length: ${body.length + 5}`]);
    case 'length and chunks':
      return request(
        [first, host, ...rest, 'Content-Length: 5', 'Transfer-Encoding: chunked'],
        `0\r\n\r\n${smuggled}`,
      );
    case 'wrong length':
      return request([first, host, ...rest, `Content-Length: ${Math.max(0, body.length - 3)}`]);
    case 'length that is no number':
      return request([first, host, ...rest, 'Content-Length: 1x']);
    case 'negative length':
      return request([first, host, ...rest, 'Content-Length: -1']);
    case 'huge length':
      return request([first, host, ...rest, 'Content-Length: 99999999999999999999']);
    case 'no host':
      return request([first, ...rest, length]);
    case 'two hosts':
      return request([first, host, 'Host: other', ...rest, length]);
    case 'bare newlines':
      return request([first, host, ...rest, length], body, '\n');
    case 'space before colon':
      return request([first, host, ...rest, length.replace(':', ' :')]);
    case 'folded header':
      return request([first, host, 'X-Folded: a', '\tb', ...rest, length]);
    case 'many headers':
      return request([
        first,
        host,
        ...Array.from({ length: 300 }, (_, i) => `X-${i}: ${i}`),
        ...rest,
        length,
      ]);
    case 'no version':
      return request([first.replace(' HTTP/1.1', ''), host, ...rest, length]);
    case 'version 9':
      return request([first.replace('1.1', '9.9'), host, ...rest, length]);
    case 'no colon':
      return request([first, host, 'nonsense', ...rest, length]);
    case 'NUL in a header':
      return request([first, host, 'X-Nul: a\0b', ...rest, length]);
    case 'bad chunk size':
      return request([first, host, ...rest, 'Transfer-Encoding: chunked'], `zz\r\n${body}\r\n0\r\n\r\n`);
    case 'chunk without end':
      return request([first, host, ...rest, 'Transfer-Encoding: chunked'], `5\r\nabcdefgh\r\n0\r\n\r\n`);
    case 'huge chunk':
      return request([first, host, ...rest, 'Transfer-Encoding: chunked'], `ffffffffffffffff\r\n${body}`);
    case 'TLS':
      return '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03';
    case 'proxy preamble':
      return `\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff\x7f\0\0\x01${request([first, host, ...rest, length])}`;
    case 'HTTP/2 preface':
      return 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';
    case 'te: identity':
      return request([first, host, ...rest, 'Transfer-Encoding: identity, chunked', length]);
    case 'te twice':
      return request(
        [first, host, ...rest, 'Transfer-Encoding: chunked', 'Transfer-Encoding: x'],
        `0\r\n\r\n${smuggled}`,
      );
    case 'newline in the path':
      return request([first.replace('/v1', '/v1\r\nX-Injected: 1\r\n'), host, ...rest, length]);
    case 'empty lines first':
      return `\r\n\r\n${request([first, host, ...rest, length])}`;
    default:
      return `\0\x01\xff${body}\r\n\r\n${smuggled}`;
  }
}

export interface ReadAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** An interim answer of the server to `Expect: 100-continue`. */
const CONTINUE = /^HTTP\/1\.1 100 .*?\r\n\r\n/;

/** The first complete answer in what was received, and what follows it. @throws if it is not HTTP */
export function takeAnswer(
  received: Buffer,
  toHead: boolean,
): { answer: ReadAnswer; rest: Buffer } | undefined {
  const interim = CONTINUE.exec(received.toString('latin1', 0, 100))?.[0];
  if (interim !== undefined) return takeAnswer(received.subarray(interim.length), toHead);
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [statusLine = '', ...lines] = received.toString('latin1', 0, end).split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1];
  if (!status) throw new Error(`an answer begins with ${JSON.stringify(statusLine.slice(0, 100))}`);
  const headers = new Map(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  // An answer that the server gives before there is a request has no length, and is its last.
  const announced = headers.get('content-length');
  const hasNoBody = toHead || status === '304';
  const length = hasNoBody ? 0 : announced === undefined ? received.length - end - 4 : Number(announced);
  if (received.length < end + 4 + length) return undefined;
  const body = received.toString('utf8', end + 4, end + 4 + length);
  return { answer: { status: Number(status), headers, body }, rest: received.subarray(end + 4 + length) };
}
