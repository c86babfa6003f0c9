/** The Dockerfile has what the program reads. A release also builds and starts it (test/release/image.test.ts). */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { stagesOf } from '../../support/image/dockerfile.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const copies = stagesOf(read('Dockerfile')).map(({ instructions }) =>
  instructions
    .filter(({ name, text }) => name === 'COPY' && !text.startsWith('--from='))
    .flatMap(({ text }) => text.split(' ').slice(0, -1)),
);

test('what it copies is not left out', () => {
  const [first, ...named] = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(first).toBe('*');
  expect(named.sort()).toEqual([...new Set(copies.flat())].map((path) => `!${path}`).sort());
});

test('what the program reads beside its own folder is in the image', () => {
  const read = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => [
      ...readFileSync(join(ROOT, 'src', path), 'utf8').matchAll(/['"`](?:\.\.\/)+(docs\/|package\.json)/g),
    ])
    .map(([, path]) => path!);
  expect([...new Set(read)].sort()).toEqual(['docs/', 'package.json']);
  const descriptions = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.json'));
  const wanted = ['package.json', ...descriptions.map((name) => `docs/${name}`)];
  expect(copies.at(-1)).toEqual(expect.arrayContaining(wanted));
});
