import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { runBundle, writeCaches } from '../../../src/node/process/run-bundle.ts';

let said: unknown[];

beforeEach(() => {
  said = [];
  Object.assign(globalThis, { say: (...words: unknown[]) => said.push(...words) });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, 'say'));
});

/** Writes the bundles, each with its cache. @returns the path of a bundle */
function bundles(texts: Readonly<Record<string, string>>): (name: string) => string {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-bundles-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const place = (name: string) => join(folder, name);
  for (const [name, text] of Object.entries(texts)) writeFileSync(place(name), text);
  writeCaches(Object.keys(texts).map(place));
  return place;
}

const run = (file: string) => runBundle(pathToFileURL(file));

test('runs a program and the bundles that it requires, each once', () => {
  const place = bundles({
    'main.cjs': "say(require('./one.cjs').name, require('./two.cjs'), require('node:path').sep.length);",
    'one.cjs': "say('one runs'); exports.name = 'one';",
    'two.cjs': "module.exports = 'two knows ' + require('./one.cjs').name;",
  });
  run(place('main.cjs'));
  expect(said).toEqual(['one runs', 'one', 'two knows one', 1]);
});

test('a bundle knows its place, and imports modules by the function that it is given', async () => {
  const place = bundles({
    'main.cjs': "say(__filename, require.resolve('./main.cjs'), module.importModule('node:os'));",
  });
  run(place('main.cjs'));
  expect(said.slice(0, 2)).toEqual([place('main.cjs'), place('main.cjs')]);
  expect(await said[2]).toHaveProperty('hostname');
});

test('a bundle that was changed later does not run as its cache has it', () => {
  const place = bundles({ 'main.cjs': "say('old');" });
  writeFileSync(place('main.cjs'), "say('new');");
  run(place('main.cjs'));
  expect(said).toEqual(['new']);
});

test('a program without a cache runs', () => {
  const place = bundles({ 'main.cjs': "say('runs');" });
  rmSync(`${place('main.cjs')}.cache`);
  run(place('main.cjs'));
  expect(said).toEqual(['runs']);
});

test('an error names the file and the line of a bundle', () => {
  const place = bundles({ 'main.cjs': "\n\nthrow new Error('fails');" });
  const stack = expect.stringContaining(`${place('main.cjs')}:3:7`);
  expect(() => run(place('main.cjs'))).toThrow(expect.objectContaining({ stack }));
});
