/** What a port says about itself: the examples of its description, and the pages made from it. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DESCRIPTIONS, withProblems } from '../../../scripts/describe-problems.ts';
import { type Description, readDescription } from '../../../src/http/description/description.ts';
import { descriptionPage } from '../../../src/http/description/description-page.ts';
import { html, prose } from '../../../src/http/description/html.ts';
import { problemPage, problemsPage } from '../../../src/http/description/problem-pages.ts';
import { isKept, type KeptReply, tagOf } from '../../../src/http/server/conditional.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { isProblemCode, kindOf, PROBLEM_CODES } from '../../../src/http/server/replies/problem-kinds.ts';
import { ApiDescription } from '../../fuzz/description.ts';

const PORTS = ['public', 'ops'] as const;
const all = { public: readDescription('public', () => true), ops: readDescription('ops', () => true) };

const textOf = (reply: KeptReply) => reply.to('').body;

describe.each(DESCRIPTIONS)('%s', (path) => {
  const file = JSON.parse(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8'));

  test('has the examples of problems that `npm run generate` writes', () => {
    expect(file).toEqual(withProblems(file, path.includes('-ops')));
  });

  test('has no example of a problem that a description without it would not get back', () => {
    const { examples: _, ...components } = file.components;
    expect(withProblems({ ...file, components }, path.includes('-ops'))).toEqual(file);
  });
});

describe.each(PORTS)('the description of the %s port', (port) => {
  const api = ApiDescription.read(port);
  const description = all[port];
  const operations = [description.paths, description.webhooks ?? {}].flatMap((paths) =>
    Object.values(paths).flatMap((methods) => Object.values(methods)),
  );
  const media = operations.flatMap(({ operationId, requestBody, responses }) =>
    [requestBody ?? {}, ...Object.values(responses)].flatMap((of) =>
      Object.entries('content' in of ? (of.content ?? {}) : {}).map(([type, one]) => ({
        where: `${operationId} ${type}`,
        ...one,
      })),
    ),
  );

  test('has a tag and a summary for each operation, and explains each tag', () => {
    const tags = description.tags.map(({ name }) => name);
    expect(operations.filter((one) => one.tags.length !== 1 || one.summary === '')).toEqual([]);
    expect([...new Set(operations.flatMap((one) => one.tags))].sort()).toEqual([...tags].sort());
  });

  test('has an example for each body and each answer, which is as described', () => {
    expect(media.length).toBeGreaterThan(40);
    for (const { where, schema, example, examples = {} } of media) {
      const values =
        example === undefined
          ? Object.values(examples).map((one) => api.resolve(one as { $ref?: string; value?: unknown }).value)
          : [example];
      expect(values.length, where).toBeGreaterThan(0);
      const forms = [schema, ...(schema.allOf ?? [])];
      for (const value of values)
        for (const form of forms) expect(api.misfit(value, form as never), where).toBeUndefined();
    }
  });

  test('gives each parameter an example', () => {
    const parameters = operations.flatMap((one) => one.parameters ?? []).map((one) => api.resolve(one));
    expect(
      parameters.filter((one) => !('example' in one || 'examples' in one)).map(({ name }) => name),
    ).toEqual([]);
  });

  test('is a page whose links lead somewhere, with all of its routes', () => {
    const page = textOf(descriptionPage(description));
    const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const links = [...page.matchAll(/ href="([^"]+)"/g)].map(([, to]) => to!);
    for (const { operationId } of operations) expect(ids).toContain(operationId);
    const problems = links.filter((to) => to.startsWith('/problems/')).map((to) => to.slice(10));
    expect(problems.filter((code) => !isProblemCode(code))).toEqual([]);
    expect(problems.length).toBeGreaterThan(50);
    const known = ['/docs', '/problems', '/openapi.json', 'data:,'];
    const others = links.filter((to) => !to.startsWith('/problems/') && !known.includes(to));
    expect(others.filter((to) => !ids.has(to.slice(1)))).toEqual([]);
    expect(page).not.toMatch(/<script|https?:\/\/(?!www\.standardwebhooks\.com)|\[object|undefined/);
  });
});

test('a process that has few routes describes those, and explains no tag and no problem without a route', () => {
  const few = readDescription('ops', (_, path) => path === '/healthz' || path === '/docs');
  expect(Object.keys(few.paths)).toEqual(['/healthz', '/docs']);
  expect(few.tags.map(({ name }) => name)).toEqual(['Events', 'Health', 'Description']);
  const codes = Object.keys(few.components.examples);
  expect(codes).toEqual(expect.arrayContaining(['invalid_request', 'not_found', 'method_not_allowed']));
  expect(codes).not.toContain('wrong_state');
  expect(few.components.schemas.ProblemCode!.enum).toEqual(codes);
  const none: Description = { ...few, paths: {} };
  expect(textOf(descriptionPage(none))).not.toContain('id="healthz"');
});

test.each(PROBLEM_CODES)('%s is explained, and answers name the page', (code) => {
  const { title, means, remedy, status } = kindOf(code);
  const page = textOf(problemPage(code, JSON.parse(problem(code).body)));
  for (const text of [means, remedy]) expect(text).toMatch(/^[A-Z].*\.$/);
  expect(page).toContain(`<h1>${title}</h1>`);
  for (const text of [means, remedy]) expect(page).toContain(prose(text).text);
  expect(page).toContain(`<dd>${status}</dd>`);
  expect(JSON.parse(problem(code).body)).toMatchObject({ type: `/problems/${code}`, title, status, code });
  expect(textOf(problemsPage([code]))).toContain(`href="/problems/${code}"`);
});

test('text can’t become HTML', () => {
  const text = `<b a="1" c='2'>&`;
  const escaped = '&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;';
  expect(html`<i>${text}${[text, undefined]}${html`<p>${1}</p>`}</i>`.text).toBe(
    `<i>${escaped}${escaped}<p>1</p></i>`,
  );
  expect(prose('a `<b>` c').text).toBe('a <code>&lt;b&gt;</code> c');
  expect(textOf(problemPage('refused', { detail: '</pre><script>' }))).not.toContain('<script');
});

describe('an answer is not sent again to a client that has it', () => {
  const tag = tagOf('body');

  test.each([[tag], [`W/${tag}`], [`"other", ${tag}`], [`W/"a,b",${tag} , "c"`], ['*'], [' * ']])(
    'If-None-Match: %s',
    (sent) => expect(isKept(sent, tag)).toBe(true),
  );

  test.each([
    [''],
    ['""'],
    [tag.slice(1, -1)],
    [tag.toLowerCase()],
    [`${tag.slice(0, -1)}x"`],
    ['"*"'],
    ['W/'],
    ['"'],
  ])('but to one that has not: %s', (sent) => expect(isKept(sent, tag)).toBe(false));

  test('another body has another tag', () => {
    expect(tagOf('body2')).not.toBe(tag);
    expect(tagOf('body')).toBe(tag);
  });
});
