import { describe, expect, test } from 'vitest';
import {
  addressKey,
  mayBeProxy,
  parseAddress,
  parseTrustedProxies,
  siteKey,
} from '../../../src/admission/addresses.ts';
import { clientAddress, type ForwardedHeader } from '../../../src/admission/forwarded.ts';

const hex = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString('hex');
const address = (text: string) => parseAddress(text)!;

describe('an address', () => {
  test.each([
    ['192.0.2.1', 'c0000201'],
    ['::ffff:192.0.2.1', 'c0000201'],
    ['::ffff:c000:201', 'c0000201'],
    ['2001:db8::1', '20010db8000000000000000000000001'],
    ['2001:db8:1:2:3:4:5:6', '20010db8000100020003000400050006'],
    ['::', '00000000000000000000000000000000'],
    ['::1', '00000000000000000000000000000001'],
    ['64:ff9b::192.0.2.1', '0064ff9b0000000000000000c0000201'],
    ['1::', '00010000000000000000000000000000'],
    ['fe80::1%eth0', undefined],
    ['192.0.2', undefined],
    ['192.0.2.256', undefined],
    ['unknown', undefined],
    ['', undefined],
  ])('%j', (text, bytes) => {
    expect(hex(parseAddress(text))).toBe(bytes);
  });

  test('has its own count, in IPv6 with its network of 64 bits', () => {
    const key = (text: string) => addressKey(address(text));
    expect(key('192.0.2.1')).not.toBe(key('192.0.2.2'));
    expect(key('192.0.2.1')).toBe(key('::ffff:192.0.2.1'));
    expect(key('2001:db8:0:1::1')).toBe(key('2001:db8:0:1:ffff:ffff:ffff:ffff'));
    expect(key('2001:db8:0:1::1')).not.toBe(key('2001:db8:0:2::1'));
  });
});

test('the network of 48 bits that an IPv6 address is in', () => {
  const key = (text: string) => siteKey(address(text));
  expect(key('2001:db8:0:1::1')).toBe(key('2001:db8:0:ffff:1::'));
  expect(key('2001:db8:0:1::1')).not.toBe(key('2001:db8:1:1::1'));
  expect(key('192.0.2.1')).toBeUndefined();
});

test.each([
  ['127.0.0.1', undefined, true],
  ['127.9.9.9', undefined, true],
  ['::1', undefined, true],
  ['::2', undefined, false],
  ['1::1', undefined, false],
  ['10.0.0.1', undefined, false],
  ['10.0.0.1', '10.0.0.0/8', true],
  ['::1', '10.0.0.0/8', true],
  ['11.0.0.1', '10.0.0.0/8', false],
  ['2001:db8::1', '2001:db8::/32', true],
  ['2001:db8::1', '10.0.0.0/8, 2001:db8::/32', true],
  ['192.0.2.1', '1', true],
  ['10.0.0.1', '10.0.0.1', true],
  ['10.0.0.2', '10.0.0.1', false],
  ['10.0.0.1', '10.0.0.1/32', true],
  ['10.0.0.1', '10.0.0.0/32', false],
  ['2001:db8::1', '2001:db8::1', true],
  ['2001:db8::2', '2001:db8::1', false],
  ['198.51.100.1', '198.0.0.0/7', true],
  ['198.51.100.1', '::ffff:198.0.0.0/103', true],
  ['fd00::1', 'fc00::/7', true],
  // A network of one family has no address of the other, even if they begin with the same bits.
  ['198.51.100.1', 'c600::/7', false],
  ['10.0.0.1', 'a00::/8', false],
  ['a00::1', '10.0.0.0/8', false],
])('%s, where %j are trusted, may be a proxy: %j', (text, proxies, expected) => {
  expect(mayBeProxy(address(text), proxies === undefined ? undefined : parseTrustedProxies(proxies)!)).toBe(
    expected,
  );
});

describe('the address of the client', () => {
  const asked = (
    peer: string,
    forwarded: string,
    proxies: string,
    header: ForwardedHeader = 'x-forwarded-for',
  ) => hex(clientAddress(address(peer), forwarded, parseTrustedProxies(proxies)!, header));
  const is = (text: string) => hex(address(text));

  test('behind one proxy is the last address of the header, whatever the client has written before', () => {
    expect(asked('10.0.0.1', '192.0.2.1', '1')).toBe(is('192.0.2.1'));
    expect(asked('10.0.0.1', '198.51.100.7, 192.0.2.1', '1')).toBe(is('192.0.2.1'));
    expect(asked('10.0.0.1', '198.51.100.7, 192.0.2.1', '10.0.0.0/8')).toBe(is('192.0.2.1'));
  });

  test('behind two is the one before', () => {
    expect(asked('10.0.0.1', '1.1.1.1, 192.0.2.1, 10.0.0.2', '2')).toBe(is('192.0.2.1'));
    expect(asked('10.0.0.1', '1.1.1.1, 192.0.2.1, 10.0.0.2', '10.0.0.0/8')).toBe(is('192.0.2.1'));
    expect(asked('::ffff:10.0.0.1', '192.0.2.1, 10.0.0.2', '::ffff:10.0.0.0/104')).toBe(is('192.0.2.1'));
  });

  test('is the connection’s, unless that belongs to a trusted proxy', () => {
    expect(asked('198.51.100.9', '192.0.2.1', '10.0.0.0/8')).toBe(is('198.51.100.9'));
    expect(asked('9.255.255.255', '192.0.2.1', '10.0.0.0/8')).toBe(is('9.255.255.255'));
    expect(asked('10.0.1.0', '192.0.2.1', '10.0.0.0/24')).toBe(is('10.0.1.0'));
    expect(asked('10.0.0.255', '192.0.2.1', '10.0.0.128/25')).toBe(is('192.0.2.1'));
    expect(asked('10.0.0.127', '192.0.2.1', '10.0.0.128/25')).toBe(is('10.0.0.127'));
  });

  test('is the nearest readable one, if a proxy gives none or an invalid one', () => {
    expect(asked('10.0.0.1', '', '1')).toBe(is('10.0.0.1'));
    expect(asked('10.0.0.1', '', '2', 'forwarded')).toBe(is('10.0.0.1'));
    expect(asked('10.0.0.1', '192.0.2.1', '2')).toBe(is('192.0.2.1'));
    expect(asked('10.0.0.1', '192.0.2.1, unknown', '2')).toBe(is('10.0.0.1'));
    expect(asked('10.0.0.1', '192.0.2.1, unknown, 10.0.0.2', '10.0.0.0/8')).toBe(is('10.0.0.2'));
  });

  test('may be written with a port, in brackets, or as RFC 7239 has it', () => {
    expect(asked('10.0.0.1', '192.0.2.1:4711', '1')).toBe(is('192.0.2.1'));
    expect(asked('10.0.0.1', '[2001:db8::1]:4711', '1')).toBe(is('2001:db8::1'));
    expect(asked('10.0.0.1', '[2001:db8::1]', '1')).toBe(is('2001:db8::1'));
    const rfc = (text: string) => asked('10.0.0.1', text, '1', 'forwarded');
    expect(rfc('for=192.0.2.1;proto=https')).toBe(is('192.0.2.1'));
    expect(rfc('for=1.1.1.1, proto=https;For="[2001:db8::1]:4711"')).toBe(is('2001:db8::1'));
    expect(asked('10.0.0.1', '2001:db8:0:0:0:0:1:2', '1')).toBe(is('2001:db8::1:2'));
    expect(rfc('proto=https')).toBe(is('10.0.0.1'));
    expect(rfc('for=_hidden')).toBe(is('10.0.0.1'));
    expect(rfc('xfor=192.0.2.1')).toBe(is('10.0.0.1'));
  });

  test.each([
    // The host that the client has asked for, as a proxy passes it on.
    ['proto=http;host="a;for=6.6.6.6";for=192.0.2.1', '192.0.2.1'],
    ['for=192.0.2.1;host="a, for=6.6.6.6"', '192.0.2.1'],
    ['for=192.0.2.1;host="a, for=6.6.6.6;x="', '192.0.2.1'],
    ['for=192.0.2.1;host="a\\", for=6.6.6.6;x=\\""', '192.0.2.1'],
    ['for=192.0.2.1;host="a\\\\"', '192.0.2.1'],
    // What the client has written before.
    ['for="6.6.6.6, for=192.0.2.1', '192.0.2.1'],
    ['for="6.6.6.6, for=192.0.2.1;host="a, for=7.7.7.7"', '192.0.2.1'],
    ['for=6.6.6.6;x=\\, for="192.0.2.1"', '192.0.2.1'],
    // A proxy writes one address. Which of two it has written, nothing tells.
    ['host=a;for=6.6.6.6;for=192.0.2.1', '10.0.0.1'],
    ['xfor=6.6.6.6;for =6.6.6.6;y="for=6.6.6.6"', '10.0.0.1'],
    ['for="6.6.6.6', '10.0.0.1'],
  ])('is not one that the client has written into a part of `Forwarded`: %s', (text, expected) => {
    expect(asked('10.0.0.1', text, '1', 'forwarded')).toBe(is(expected));
  });

  test.each([
    'x[2001:db8::1]',
    '[2001:db8::1]x',
    '[2001:db8::1]:',
    'x192.0.2.1:80',
    '192.0.2.1:80x',
    '192.0.2.1:',
  ])('is not taken from %j, which is none', (hop) => {
    expect(asked('10.0.0.1', hop, '1')).toBe(is('10.0.0.1'));
  });

  test('a header with many hops is read only in part', () => {
    const hops = Array.from({ length: 2_000 }, () => '10.0.0.2').join(',');
    expect(asked('10.0.0.1', `192.0.2.1,${hops}`, '10.0.0.0/8')).toBe(is('10.0.0.2'));
  });
});

test.each([
  ['1', 1],
  ['16', 16],
])('%j is a number of proxies', (text, count) => {
  expect(parseTrustedProxies(text)).toBe(count);
});

test.each([
  '',
  '0',
  '17',
  'proxy',
  '10.0.0.0/33',
  '10.0.0.0/8/8',
  '10.0.0.0/',
  '10.0.0.0/1e1',
  '10.0.0.0/0x8',
  '10.0.0.0/0008',
  '10.0.0.0/8,',
  '2001:db8::/129',
  '10.0.0.0/-1',
  '::ffff:10.0.0.0/95',
  '0.0.0.0/0',
  '0.0.0.0/1,128.0.0.0/1',
  '198.0.0.0/6',
  '::ffff:198.0.0.0/102',
  '::/0',
  '10.0.0.0/8,::/0',
])('%j names no proxies', (text) => {
  expect(parseTrustedProxies(text)).toBeUndefined();
});
