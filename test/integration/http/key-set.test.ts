/**
 * Bad answers at the address of the key set: a node reads no more of them than its limits allow, and answers in time.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip } from 'node:zlib';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Identity, jwtIdentity } from '../../../src/http/identity/identity.ts';
import type { HttpRequest } from '../../../src/http/server/http-request.ts';
import { until } from '../../support/fixtures.ts';
import { LONG_TIMEOUTS } from '../../support/long-timeouts.ts';

const MIB = 1_024 * 1_024;
/** One piece of a long answer. */
const PIECE = Buffer.alloc(64 * 1_024, ' ');

let key: CryptoKey;
let jwk: JWK;
let server: Server | undefined;

beforeAll(async () => {
  const pair = await generateKeyPair('ES256', { extractable: true });
  key = pair.privateKey;
  jwk = { ...(await exportJWK(pair.publicKey)), kid: 'ours', alg: 'ES256' };
});

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** @returns the address of the key set */
async function publish(
  answer: (response: ServerResponse, request: IncomingMessage) => void,
): Promise<string> {
  server = createServer((request, response) => answer(response, request));
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
}

/** Authenticates with a good token. @returns the identity, and the reported fault */
async function ask(jwksUrl: string, timeoutMs = LONG_TIMEOUTS.requestDeadlineMs) {
  const faults: unknown[] = [];
  const options = { secret: undefined, jwksUrl, audience: undefined, issuer: undefined, timeoutMs };
  const authenticate = jwtIdentity(options, (error) => faults.push(error));
  const token = await new SignJWT({ sub: 'ann' })
    .setProtectedHeader({ alg: 'ES256', kid: 'ours' })
    .setExpirationTime('1h')
    .sign(key);
  const request = { getHeader: () => `Bearer ${token}` } as unknown as HttpRequest;
  const identity: Identity = await authenticate(request);
  return { identity, fault: faults.map(String).join() };
}

const keySet = (keys: number, spaces = 0) =>
  JSON.stringify({ keys: [jwk, ...Array.from({ length: keys - 1 }, () => ({ kty: 'OKP' }))] }) +
  ' '.repeat(spaces);

test('a set of a hundred keys and 256 KiB is accepted', async () => {
  const text = keySet(100);
  const url = await publish((response) => response.end(text + ' '.repeat(256 * 1_024 - text.length)));
  expect(await ask(url)).toEqual({ identity: { buyerId: 'ann' }, fault: '' });
});

test.each([
  ['one byte more', () => keySet(1).padEnd(256 * 1_024 + 1), /longer than 262144 bytes/],
  ['one key more', () => keySet(101), /has 101 keys; at most 100 are read/],
  ['what is not JSON', () => '<html>', /is not JSON/],
])('%s is not a key set', async (_, text, reason) => {
  const url = await publish((response) => response.end(text()));
  expect(await ask(url)).toEqual({
    identity: { unavailable: expect.any(String) },
    fault: expect.stringMatching(reason),
  });
});

test.each([
  ['plain', false],
  ['packed, which shrinks it to a thousandth', true],
])('an endless answer is dropped at the limit: %s', async (_, isPacked) => {
  let bytes = 0;
  let isClosed = false;
  const url = await publish((response) => {
    if (isPacked) response.setHeader('content-encoding', 'gzip');
    const gzip = createGzip();
    const out = isPacked ? gzip : response;
    if (isPacked) gzip.pipe(response);
    const write = () => {
      if (isClosed) return;
      bytes += PIECE.length;
      if (out.write(PIECE)) setImmediate(write);
      else out.once('drain', write);
    };
    response.once('close', () => {
      isClosed = true;
    });
    write();
  });
  expect(await ask(url)).toMatchObject({
    identity: { unavailable: expect.any(String) },
    fault: expect.stringMatching(/longer than 262144 bytes/),
  });
  await until(() => isClosed, { what: 'the end of the connection' });
  // Bytes under way fill the sockets' buffers, which hold some MiB, or a thousand times as much of packed bytes.
  if (!isPacked) expect(bytes).toBeLessThan(64 * MIB);
});

test('a redirect is not followed', async () => {
  const asked: (string | undefined)[] = [];
  const url = await publish((response, { url }) => {
    asked.push(url);
    if (url === '/keys') response.writeHead(302, { location: '/elsewhere' }).end();
    else response.end(keySet(1));
  });
  expect(await ask(url)).toMatchObject({
    identity: { unavailable: expect.any(String) },
    fault: expect.stringMatching(/answered with status 302 instead of 200/),
  });
  expect(asked).toEqual(['/keys']);
});

test('a key set that arrives slowly has the same deadline as one that does not arrive', async () => {
  let isClosed = false;
  const url = await publish((response) => {
    const drip = setInterval(() => response.write(' '), 20);
    response.once('close', () => {
      clearInterval(drip);
      isClosed = true;
    });
  });
  expect(await ask(url, 300)).toMatchObject({ identity: { unavailable: expect.any(String) } });
  await until(() => isClosed, { what: 'the end of the connection' });
});

describe('a token that does not name one key', () => {
  const signedBy = (signer: CryptoKey, header: object = {}) =>
    new SignJWT({ sub: 'ann' })
      .setProtectedHeader({ alg: 'ES256', ...header })
      .setExpirationTime('1h')
      .sign(signer);
  const pair = async (kid?: string) => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
    return { privateKey, jwk: { ...(await exportJWK(publicKey)), ...(kid !== undefined && { kid }) } };
  };

  async function identityFor(keys: readonly object[], token: string): Promise<Identity> {
    const jwksUrl = await publish((response) => response.end(JSON.stringify({ keys })));
    const options = { secret: undefined, jwksUrl, audience: undefined, issuer: undefined, timeoutMs: 20_000 };
    const authenticate = jwtIdentity(options, (error) => expect.unreachable(String(error)));
    const identity = await authenticate({ getHeader: () => `Bearer ${token}` } as unknown as HttpRequest);
    server!.closeAllConnections();
    server!.close();
    return identity;
  }

  test('is compared with all of them', async () => {
    const [old, current, next] = [await pair('a'), await pair('b'), await pair('b')];
    const keys = [old.jwk, current.jwk, next.jwk];
    for (const { privateKey } of [old, current, next])
      expect(await identityFor(keys, await signedBy(privateKey))).toEqual({ buyerId: 'ann' });
    for (const { privateKey } of [current, next])
      expect(await identityFor(keys, await signedBy(privateKey, { kid: 'b' }))).toEqual({ buyerId: 'ann' });
  });

  test('is refused if no key has signed it, and with the reason if one has', async () => {
    const [one, other, stranger] = [await pair('a'), await pair('a'), await pair()];
    const keys = [one.jwk, other.jwk];
    const invalid = { refused: { reason: 'invalid' } };
    expect(await identityFor(keys, await signedBy(stranger.privateKey))).toMatchObject(invalid);
    expect(await identityFor(keys, await signedBy(other.privateKey, { kid: 'b' }))).toMatchObject(invalid);
    const over = new SignJWT({ sub: 'ann' }).setProtectedHeader({ alg: 'ES256' }).setExpirationTime(1);
    expect(await identityFor(keys, await over.sign(other.privateKey))).toMatchObject({
      refused: { reason: 'expired' },
    });
  });
});
