import { expect, test } from 'vitest';
import { parseOrigins } from '../../../src/admission/origins.ts';

test.each([
  ['*', '*'],
  [' * ', '*'],
  ['https://shop.example', new Set(['https://shop.example'])],
  ['https://shop.example, http://localhost:3000', new Set(['https://shop.example', 'http://localhost:3000'])],
  ['http://[::1]:8080', new Set(['http://[::1]:8080'])],
  ['https://xn--bcher-kva.example', new Set(['https://xn--bcher-kva.example'])],
])('%s names origins', (text, origins) => expect(parseOrigins(text)).toEqual(origins));

test.each([
  [''],
  [','],
  ['null'],
  ['shop.example'],
  ['https://'],
  ['https://shop.example/'],
  ['https://shop.example/shop'],
  ['https://shop.example?a'],
  ['https://shop.example:443'],
  ['http://shop.example:80'],
  ['https://Shop.example'],
  ['https://ann:secret@shop.example'],
  ['https://*.shop.example'],
  ['https://shop*.example'],
  ['ftp://shop.example'],
  ['file:///shop'],
  ['*,https://shop.example'],
  ['https://shop.example,'],
  ['https://shop.example https://other.example'],
  ['https://bücher.example'],
])('%s does not: it would match no page, or more than it seems', (text) =>
  expect(parseOrigins(text)).toBeUndefined(),
);
