// npm run lint:api: checks docs/openapi*.json with the rules that Redocly recommends.
import { readFileSync } from 'node:fs';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { isMain } from './is-main.mjs';

const root = new URL('..', import.meta.url);
const DESCRIPTIONS = ['docs/openapi.json', 'docs/openapi-ops.json'];

/** Beyond the recommended rules, and where they do not fit, with the reason. */
const RULES = {
  // Every example is an answer that a reader may copy.
  'no-invalid-media-type-examples': 'error',
  'no-invalid-schema-examples': 'error',
  'no-invalid-parameter-examples': 'error',
  'operation-singular-tag': 'error',
  'operation-description': 'off', // The summary says it all for most routes; docs/api/ has the rest.
  'tags-alphabetical': 'off', // In the order in which a reader needs them.
};

/** What is not referenced: the answers to requests that no route has. `info.description` names them. */
const UNREFERENCED = ['#/components/responses/NotFound', '#/components/responses/MethodNotAllowed'];

/** @returns what the linter finds in a description, one line each */
export async function lint(text, name) {
  const config = await createConfig({ extends: ['recommended'], rules: RULES });
  const problems = await lintFromString({ source: text, absoluteRef: name, config });
  return problems
    .filter(({ location: [at] }) => !UNREFERENCED.includes(at?.pointer))
    .map(
      ({ ruleId, severity, message, location: [at] }) =>
        `${name}${at?.pointer ?? ''}: ${severity} ${ruleId}: ${message.trim()}`,
    );
}

if (isMain(import.meta.url)) {
  const found = await Promise.all(
    DESCRIPTIONS.map((name) => lint(readFileSync(new URL(name, root), 'utf8'), name)),
  );
  const lines = found.flat();
  console.log(lines.length === 0 ? `${DESCRIPTIONS.join(', ')}: the linter finds nothing` : lines.join('\n'));
  process.exitCode = lines.length === 0 ? 0 : 1;
}
