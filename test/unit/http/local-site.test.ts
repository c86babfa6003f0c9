/** A node that buyers are named at by a header, on the loopback: web pages of others do not buy there. */
import { describe, expect, test } from 'vitest';
import { headerIdentity, refusal } from '../../../src/http/identity/identity.ts';
import { onlyFromThisMachine } from '../../../src/http/identity/local-site.ts';
import type { HttpRequest } from '../../../src/http/server/http-request.ts';

const authenticate = onlyFromThisMachine(headerIdentity());

function ask(headers: Record<string, string>) {
  const request = { getHeader: (name: string) => headers[name] ?? '' } as unknown as HttpRequest;
  return authenticate(request);
}

describe('a name of this machine', () => {
  test.each([
    ...['localhost', 'localhost:8080', 'LocalHost:1', '127.0.0.1', '127.0.0.1:65535', '127.1.2.3:80'],
    ...['[::1]', '[::1]:8080'],
  ])('%s buys', (host) => {
    expect(ask({ host, 'x-buyer-id': 'ann' })).toEqual({ buyerId: 'ann' });
    const origin = `http://${host}`;
    expect(ask({ host: 'localhost:8080', origin, 'x-buyer-id': 'ann' })).toEqual({ buyerId: 'ann' });
  });
});

describe('a name of another', () => {
  const NAMES = [
    ...['evil.example', 'evil.example:8080', 'localhost.evil.example', '127.0.0.1.evil.example:80'],
    ...['evil.example#localhost', 'localhost@evil.example', 'localhost:80@evil.example', 'localhost:'],
    ...['127.0.0.1.', 'xlocalhost', '10.0.0.1', '0.0.0.0', '[::2]', '[::1', 'localhost:8080,evil.example'],
    ...['localhost\n', ' localhost', 'http://localhost'],
  ];

  test.each(['', ...NAMES])('%j as Host does not', (host) => {
    // Also right after one that did, whose name is remembered.
    ask({ host: 'localhost:8080', 'x-buyer-id': 'ann' });
    const identity = ask({ host, 'x-buyer-id': 'ann' });
    expect(identity).toEqual({ foreignSite: expect.stringContaining(`Host is ${JSON.stringify(host)}`) });
    const { reply } = refusal(identity as { foreignSite: string });
    expect(JSON.parse(reply.body)).toMatchObject({ status: 403, code: 'forbidden' });
  });

  test.each([
    'null',
    'file://',
    'chrome-extension://localhost',
    'localhost',
    ...NAMES.map((n) => `https://${n}`),
  ])('%j as Origin does not', (origin) => {
    const identity = ask({ host: 'localhost:8080', origin, 'x-buyer-id': 'ann' });
    expect(identity).toEqual({ foreignSite: expect.stringContaining('Origin is ') });
  });
});
