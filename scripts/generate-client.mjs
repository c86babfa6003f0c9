// Generates the types of the client (src/client/generated/) from the OpenAPI descriptions of both ports: `npm run generate`.
import { readFileSync, writeFileSync } from 'node:fs';
import { isMain } from './is-main.mjs';

const root = new URL('..', import.meta.url);

/** Each description, and the file that is generated from it. */
export const GENERATED = [
  { from: 'docs/openapi.json', to: 'src/client/generated/buyers-api.ts' },
  {
    from: 'docs/openapi-ops.json',
    to: 'src/client/generated/operators-api.ts',
    // A wrong address may lead there, and some routes have the same path.
    unlike: 'docs/openapi.json',
  },
];

/**
 * The text of the file for the description at the path `from`.
 * @param unlike the path of the other port's description, whose answers must not be taken for answers of this one
 */
export function generate(from, unlike) {
  const api = described(from);
  const others = unlike === undefined ? undefined : described(unlike);
  const { Problem, ProblemCode, ...schemas } = api.components.schemas;
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
  );
  return [
    `/** Generated from ${from} by scripts/generate-client.mjs. Change the description, then run \`npm run generate\`. */\n`,
    'interface Problem<Code extends string> {',
    '  readonly code: Code;',
    '  /** Where the port explains the code, relative to its address. Left out if no answer came. */',
    '  readonly type?: string;',
    '  readonly title: string;',
    '  /** The status of the HTTP answer; 0 if no answer came. */',
    '  readonly status: number;',
    '  readonly detail?: string;',
    '}\n',
    ...Object.entries(schemas).map(
      ([name, schema]) => `${comment(schema)}export type ${name} = ${typeOf(schema)};\n`,
    ),
    '/** The problems by code, each with the members that it has. */',
    'export interface Problems {',
    ...ProblemCode.enum.map((code) => `  ${code}: Problem<'${code}'>${membersOf(code, Problem.properties)};`),
    '}\n',
    'export const CODES: readonly string[] = [',
    ...ProblemCode.enum.map((code) => `  '${code}',`),
    '];\n',
    'export interface Operations {',
    ...operations.map(operationType),
    '}\n',
    ...(others
      ? [
          '/**',
          ' * Method, path, and a member that the answer always has: if possible one that no answer of the other port has. Without such a',
          ' * member, the answer is a text.',
          ' */',
        ]
      : [
          '/** Method, path, and a member that the answer always has. Without such a member, the answer is a text. */',
        ]),
    'export const ROUTES = {',
    ...operations.map(({ operationId, method, path, responses }) => {
      const other = others?.paths[path]?.[method];
      const foreign = other ? namesIn(answerOf(other.responses, others.components.schemas)) : [];
      const route = [method.toUpperCase(), path, ...memberOf(responses, schemas, foreign)];
      return `  ${operationId}: [${route.map(literal).join(', ')}],`;
    }),
    '} as const;\n',
  ].join('\n');
}

function operationType({ operationId, requestBody, responses }) {
  const answers = Object.entries(responses).flatMap(([status, { content = {} }]) =>
    status < '300' ? Object.values(content).map(({ schema }) => typeOf(schema, 2)) : [],
  );
  const codes = Object.values(responses).flatMap(
    ({ content }) => content?.['application/problem+json']?.schema.allOf[1].properties.code.enum ?? [],
  );
  const body = requestBody?.content['application/json'].schema;
  return [
    `  ${operationId}: {`,
    `    readonly body: ${body ? typeOf(body, 2) : 'undefined'};`,
    `    readonly answer: ${[...new Set(answers)].join(' | ')};`,
    `    readonly code: ${codes.map((code) => `'${code}'`).join(' | ')};`,
    '  };',
  ].join('\n');
}

const described = (path) => JSON.parse(readFileSync(new URL(path, root), 'utf8'));

function answerOf(responses, schemas) {
  const { schema } = Object.values(Object.values(responses)[0].content)[0];
  return schema.$ref ? schemas[typeOf(schema)] : schema;
}

const namesIn = ({ oneOf, properties = {} }) => oneOf?.flatMap(namesIn) ?? Object.keys(properties);

/**
 * The first member of the answer, in a list: if there is one, the first that is not among `foreign`. The list is empty if the answer
 * is a text.
 */
function memberOf(responses, schemas, foreign) {
  const answer = answerOf(responses, schemas);
  const { required = [] } = answer.oneOf?.[0] ?? answer;
  const own = required.find((name) => !foreign.includes(name)) ?? required[0];
  return own === undefined ? [] : [own];
}

/**
 * The members of a problem with this code. A member's description lists the codes that have it, separated by `; `. A clause such
 * as `ended, if …` means that the member is optional with that code.
 */
function membersOf(code, { type, title, status, code: _, detail, ...properties }) {
  const members = Object.entries(properties).flatMap(([name, { description, ...schema }]) => {
    const clause = description.split('; ').find((text) => /^\w+/.exec(text)?.[0] === code);
    if (clause === undefined) return [];
    return `readonly ${name}${clause.includes(', if ') ? '?' : ''}: ${typeOf(schema)}`;
  });
  return members.length === 0 ? '' : ` & { ${members.join('; ')} }`;
}

function typeOf(schema, depth = 0) {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.oneOf) return schema.oneOf.map((one) => typeOf(one, depth)).join(' | ');
  if (schema.allOf) return schema.allOf.map((one) => typeOf(one, depth)).join(' & ');
  if (schema.enum) return schema.enum.map((value) => literal(value)).join(' | ');
  if ('const' in schema) return literal(schema.const);
  if (Array.isArray(schema.type))
    return schema.type.map((type) => typeOf({ ...schema, type }, depth)).join(' | ');
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `readonly (${typeOf(schema.items, depth)})[]`;
    case 'object':
      return objectOf(schema, depth);
    case undefined:
      return 'unknown';
    default:
      throw new Error(`no TypeScript for a schema of the type ${schema.type}`);
  }
}

function objectOf({ properties, required = [] }, depth) {
  if (!properties) return 'Readonly<Record<string, unknown>>';
  const indent = '  '.repeat(depth + 1);
  const lines = Object.entries(properties).map(([name, schema]) => {
    const optional = required.includes(name) ? '' : '?';
    return `${comment(schema, indent)}${indent}readonly ${name}${optional}: ${typeOf(schema, depth + 1)}${optional && ' | undefined'};`;
  });
  return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`;
}

function comment({ description }, indent = '') {
  return description === undefined ? '' : `${indent}/** ${description} */\n`;
}

function literal(value) {
  return typeof value === 'string' ? `'${value}'` : String(value);
}

if (isMain(import.meta.url)) {
  for (const { from, to, unlike } of GENERATED) writeFileSync(new URL(to, root), generate(from, unlike));
}
