/** A valid token has only one text, and no client can choose how much memory is used for tokens. */

import { createHmac } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { type Identity, jwtIdentity } from '../../../src/http/identity/identity.ts';
import type { HttpRequest } from '../../../src/http/server/http-request.ts';

const SECRET = 'a secret of more than thirty-two characters';
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const ANN: Identity = { buyerId: 'ann' };
const REFUSED = {
  refused: { reason: expect.stringMatching(/^(missing|invalid)$/), detail: expect.any(String) },
  scheme: 'Bearer',
};

const authenticate = jwtIdentity(
  { secret: SECRET, jwksUrl: undefined, audience: undefined, issuer: undefined, timeoutMs: 1_000 },
  (error) => {
    throw error;
  },
);

/** A header is a string of its own, as uWebSockets.js makes it. */
function ask(authorization: string): Identity | Promise<Identity> {
  const value = Buffer.from(authorization, 'latin1').toString('latin1');
  return authenticate({ getHeader: () => value } as unknown as HttpRequest);
}

const base64url = (json: unknown) => Buffer.from(JSON.stringify(json)).toString('base64url');

function tokenOf(sub: string, claims: object = {}): string {
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const signed = `${base64url({ alg: 'HS256' })}.${base64url({ sub, exp, ...claims })}`;
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`;
}

/** Other texts that a careless decoder reads as the same signature: the last character has bits beyond the last byte. */
function sameSignature(token: string): string[] {
  const last = ALPHABET.indexOf(token.at(-1)!);
  return [1, 2, 3].map((unused) => token.slice(0, -1) + ALPHABET[last + unused]);
}

const TOKEN = tokenOf('ann');

describe('a valid token', () => {
  test.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER ${TOKEN}`])('lets in: %s', async (header) => {
    expect(await ask(header)).toEqual(ANN);
    expect(ask(header)).toEqual(ANN);
  });

  const others: [string, string][] = [
    ['a tab behind it', `Bearer ${TOKEN}\t`],
    ['a tab before it', `Bearer \t${TOKEN}`],
    ['two spaces before it', `Bearer  ${TOKEN}`],
    ['a tab for the space', `Bearer\t${TOKEN}`],
    ['padding', `Bearer ${TOKEN}=`],
    ['padding of its payload', `Bearer ${TOKEN.replace(/\.([^.]+)\./, '.$1=.')}`],
    ['a further word', `Bearer ${TOKEN} x`],
    ['a space behind it', `Bearer ${TOKEN} `],
    ['a line end', `Bearer ${TOKEN}\n`],
    ['a further token', `Bearer ${TOKEN}, Bearer ${TOKEN}`],
    ['a further part', `Bearer ${TOKEN}.x`],
    ['a dot behind it', `Bearer ${TOKEN}.`],
    ['a tab within its signature', `Bearer ${TOKEN.slice(0, -4)}\t${TOKEN.slice(-4)}`],
    ['a byte beyond ASCII', `Bearer ${TOKEN}\xa0`],
    ['quotes', `Bearer "${TOKEN}"`],
    ...sameSignature(TOKEN).map((same, i): [string, string] => [`unused bits: ${i + 1}`, `Bearer ${same}`]),
  ];

  test.each(others)('is refused at once with %s', (_, header) => {
    expect(ask(header)).toEqual(REFUSED);
  });

  test('has no unused bits in a signature of any length', () => {
    // 32, 33 and 34 bytes: the last group has 3, 4 and 2 characters.
    for (const bytes of [32, 33, 34]) {
      const signature = Buffer.alloc(bytes, 0xff).toString('base64url');
      const texts = [...ALPHABET].map((last) => `a.b.${signature.slice(0, -1)}${last}`);
      const isMalformed = (token: string) => !(ask(`Bearer ${token}`) instanceof Promise);
      const decoded = new Set(
        texts.map((token) => Buffer.from(token.split('.')[2]!, 'base64url').toString('hex')),
      );
      expect(texts.filter((token) => !isMalformed(token))).toHaveLength(decoded.size);
    }
  });
});

describe('memory', () => {
  const MIB = 1_024 * 1_024;

  test('does not grow with many texts of one token', async () => {
    await ask(`Bearer ${TOKEN}`);
    const before = heapBytes();
    for (let i = 1; i <= 4_000; i++) {
      await ask(`Bearer ${TOKEN}${'\t'.repeat(i)}`);
      await ask(`Bearer ${TOKEN}${'='.repeat(i)}`);
      await ask(`Bearer ${TOKEN} ${'x'.repeat(i)}`);
    }
    expect(heapBytes() - before).toBeLessThan(2 * MIB);
  });

  test('grows with the number of valid tokens, and not with their length', async () => {
    const buyers = Array.from({ length: 500 }, (_, i) => `buyer-${i}`);
    await ask(`Bearer ${tokenOf('bob', { roles: 'r'.repeat(10_000) })}`);
    const before = heapBytes();
    for (const sub of buyers) {
      expect(await ask(`Bearer ${tokenOf(sub, { roles: 'r'.repeat(10_000) })}`)).toEqual({ buyerId: sub });
    }
    // 400 bytes each; as texts they would take 6.6 MB.
    expect(heapBytes() - before).toBeLessThan(2 * MIB);
  });

  test('does not grow by tokens that are refused', async () => {
    const before = heapBytes();
    for (let i = 0; i < 1_000; i++) {
      const [header, payload] = tokenOf(`nobody-${i}`, { roles: 'r'.repeat(5_000) }).split('.');
      expect(await ask(`Bearer ${header}.${payload}.${'A'.repeat(43)}`)).toEqual(REFUSED);
    }
    expect(heapBytes() - before).toBeLessThan(2 * MIB);
  });
});

/** Resolves after the garbage is collected. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
