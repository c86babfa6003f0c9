/** The description of a port (docs/openapi.json, docs/openapi-ops.json), as far as the port's pages need to know its form. */
import { readFileSync } from 'node:fs';
import type { ProblemCode } from '../server/replies/problem-kinds.ts';

export type PortName = 'public' | 'ops';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

export interface Example {
  readonly $ref?: string;
  readonly summary?: string;
  readonly value?: unknown;
}

export interface Media {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, Example>>;
}

export interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description?: string }>>;
  readonly content?: Readonly<Record<string, Media>>;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response>>;
}

export type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

export interface Description {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Paths;
  readonly webhooks?: Paths;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>;
    /** A problem for each code that the port answers. */
    readonly examples: Readonly<Partial<Record<ProblemCode, { readonly value: unknown }>>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
}

const FILES: Readonly<Record<PortName, string>> = { public: 'openapi.json', ops: 'openapi-ops.json' };

/** @param serves whether the process has this route: `stockade sync` has few of those of the ops port */
export function readDescription(
  port: PortName,
  serves: (method: string, path: string) => boolean | undefined,
): Description {
  // The package has docs/ too (`files` in package.json).
  const file = new URL(`../../../docs/${FILES[port]}`, import.meta.url);
  const { paths, ...rest } = JSON.parse(readFileSync(file, 'utf8')) as Description;
  const served = Object.entries(paths).flatMap(([path, operations]) => {
    const here = Object.entries(operations).filter(([method]) => serves(method, path));
    return here.length === 0 ? [] : [[path, Object.fromEntries(here)]];
  });
  return withUsedProblems(withUsedTags({ ...rest, paths: Object.fromEntries(served) as Paths }));
}

function withUsedTags(description: Description): Description {
  const { paths, webhooks = {}, tags } = description;
  const used = new Set(
    [...Object.values(paths), ...Object.values(webhooks)]
      .flatMap((operations) => Object.values(operations))
      .flatMap((operation) => operation.tags),
  );
  return { ...description, tags: tags.filter(({ name }) => used.has(name)) };
}

/** Without the codes of problems that no route answers. Each code has an example, to which the answers refer. */
function withUsedProblems(description: Description): Description {
  const { examples, schemas, ...others } = description.components;
  const text = JSON.stringify({ ...description, components: others });
  const codes = Object.keys(examples).filter((code) => text.includes(`"#/components/examples/${code}"`));
  const used = Object.fromEntries(codes.map((code) => [code, examples[code as ProblemCode]]));
  const ProblemCode: Schema = { ...schemas.ProblemCode, enum: codes };
  return {
    ...description,
    components: { ...others, examples: used, schemas: { ...schemas, ProblemCode } },
  };
}

/** Follows a reference within the description. */
export function resolved<T extends { readonly $ref?: string }>(description: Description, part: T): T {
  if (part.$ref === undefined) return part;
  const [, ...names] = part.$ref.split('/');
  return names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], description) as T;
}
