/**
 * Writes into the descriptions of both ports what follows from the table of codes (src/http/server/replies/problem-kinds.ts): an example
 * of each problem, and at each answer the examples of the codes that it may have. `npm run generate` runs this.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { kindOf, type ProblemCode, typeOf } from '../src/http/server/replies/problem-kinds.ts';
import { isMain } from './is-main.mjs';

export const DESCRIPTIONS = ['docs/openapi.json', 'docs/openapi-ops.json'];

const ROOT = new URL('../', import.meta.url);
const PROBLEM = 'application/problem+json';
/** At the ops port, the answer to an invalid request lists its faults. */
const OPS_EXAMPLES: Partial<Record<ProblemCode, object>> = {
  invalid_request: {
    detail: 'the sale is not valid: stock must be at least 1',
    faults: [{ field: 'stock', problem: 'must be at least 1' }],
  },
  unauthenticated: { reason: 'missing', detail: 'Authorization must be "Bearer <OPS_TOKEN>"' },
  insufficient_stock: {
    detail: "sale tickets has 12 unsold units, so 20 can't be withdrawn",
    remaining: 12,
  },
  unavailable: { detail: 'Postgres does not answer' },
  busy: { detail: 'another withdrawal of sale tickets is under way: repeat the request in a moment' },
};

// biome-ignore lint/suspicious/noExplicitAny: the document has an external format.
type Json = any;

/** @returns the description with the examples of its problems, and otherwise as it is */
export function withProblems(description: Json, isOps: boolean): Json {
  const described = structuredClone(description);
  const { examples: _, ...components } = described.components;
  const codes: ProblemCode[] = components.schemas.ProblemCode.enum;
  described.components = {
    ...components,
    examples: Object.fromEntries(codes.map((code) => [code, exampleOf(code, isOps)])),
  };
  for (const response of responsesOf(described)) {
    const content = response.content?.[PROBLEM];
    if (!content) continue;
    const possible: ProblemCode[] = content.schema.allOf[1].properties.code.enum;
    content.examples = Object.fromEntries(
      possible.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
    );
  }
  return described;
}

function responsesOf({ paths, components }: Json): Json[] {
  const operations = Object.values<Json>(paths).flatMap((methods) => Object.values<Json>(methods));
  return [
    ...operations.flatMap(({ responses }) => Object.values(responses)),
    ...Object.values(components.responses ?? {}),
  ];
}

function exampleOf(code: ProblemCode, isOps: boolean): Json {
  const { title, status, detail, means, example } = kindOf(code);
  const members = (isOps && OPS_EXAMPLES[code]) || example;
  return {
    summary: title,
    description: means,
    value: { type: typeOf(code), title, status, code, ...(detail && { detail }), ...members },
  };
}

if (isMain(import.meta.url)) {
  for (const path of DESCRIPTIONS) {
    const file = new URL(path, ROOT);
    const described = withProblems(JSON.parse(readFileSync(file, 'utf8')), path.includes('-ops'));
    writeFileSync(file, `${JSON.stringify(described, null, 2)}\n`);
  }
  execFileSync('npx', ['biome', 'format', '--write', ...DESCRIPTIONS], { cwd: ROOT, stdio: 'inherit' });
}
