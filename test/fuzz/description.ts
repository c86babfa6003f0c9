/** One port as docs/openapi*.json describe it. The fuzzer makes requests from it and judges answers by it. */
import { readFileSync } from 'node:fs';

export type PortName = 'public' | 'ops';

/** The part of JSON Schema that the descriptions use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly items?: Schema;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'header' | 'query';
  readonly schema: Schema;
}

export interface Operation {
  readonly port: PortName;
  readonly id: string;
  readonly method: string;
  /** The path, with parameters in braces. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: { readonly schema: Schema; readonly required: boolean } | undefined;
  readonly isOpen: boolean;
  /** The schemas of answers that are not problems, by status; `undefined` for text. */
  readonly answers: ReadonlyMap<number, Schema | undefined>;
  /** The codes of problems, by status. */
  readonly codes: ReadonlyMap<number, readonly string[]>;
}

const FILES: Record<PortName, string> = { public: 'openapi.json', ops: 'openapi-ops.json' };

// biome-ignore lint/suspicious/noExplicitAny: the document has an external format.
type Json = any;

export class ApiDescription {
  readonly operations: readonly Operation[];
  readonly codes: readonly string[];
  readonly #document: Json;

  private constructor(document: Json, port: PortName) {
    this.#document = document;
    this.codes = document.components.schemas.ProblemCode.enum;
    this.operations = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
      Object.entries<Json>(methods).map(([method, operation]) =>
        this.#operation(port, path, method, operation),
      ),
    );
  }

  static read(port: PortName): ApiDescription {
    const file = new URL(`../../docs/${FILES[port]}`, import.meta.url);
    return new ApiDescription(JSON.parse(readFileSync(file, 'utf8')), port);
  }

  /** Resolves a reference. */
  resolve<T extends { readonly $ref?: string }>(part: T): T {
    if (part.$ref === undefined) return part;
    const names = part.$ref.split('/').slice(1);
    return names.reduce((at, name) => at[name], this.#document) as T;
  }

  #operation(port: PortName, path: string, method: string, operation: Json): Operation {
    const answers = new Map<number, Schema | undefined>();
    const codes = new Map<number, readonly string[]>();
    for (const [status, { content }] of Object.entries<Json>(operation.responses)) {
      if (!content) answers.set(Number(status), undefined);
      for (const [type, { schema }] of Object.entries<Json>(content ?? {})) {
        if (type === 'application/problem+json')
          codes.set(Number(status), schema.allOf[1].properties.code.enum);
        else answers.set(Number(status), type === 'application/json' ? schema : undefined);
      }
    }
    const body = operation.requestBody;
    return {
      ...{ port, path, answers, codes, id: operation.operationId, method: method.toUpperCase() },
      parameters: (operation.parameters ?? []).map((parameter: Json) => this.resolve(parameter)),
      body: body && { schema: body.content['application/json'].schema, required: body.required },
      isOpen: operation.security?.length === 0,
    };
  }

  /** Why a value does not fit its schema; `undefined` if it does. */
  misfit(value: unknown, unresolved: Schema, at = 'the body'): string | undefined {
    const schema = this.resolve(unresolved);
    if ('const' in schema && value !== schema.const) return `${at} is not ${JSON.stringify(schema.const)}`;
    if (schema.enum && !schema.enum.includes(value)) return `${at} is ${JSON.stringify(value)}`;
    if (schema.pattern && !(typeof value === 'string' && new RegExp(schema.pattern).test(value)))
      return `${at} does not match ${schema.pattern}`;
    if (schema.minimum !== undefined && !((value as number) >= schema.minimum)) return `${at} is ${value}`;
    if (schema.type !== undefined && !isOf(value, [schema.type].flat())) return `${at} is no ${schema.type}`;
    if (Array.isArray(value))
      return first(value, (item, i) => this.misfit(item, schema.items!, `${at}[${i}]`));
    if (typeof value !== 'object' || value === null || !schema.properties) return undefined;
    const missing = schema.required?.find((name) => !(name in value));
    if (missing !== undefined) return `${at} has no ${missing}`;
    return first(Object.entries(value), ([name, member]) => {
      const known = schema.properties?.[name];
      if (known) return this.misfit(member, known, `${at}.${name}`);
      return schema.additionalProperties === false ? `${at} has a ${name}` : undefined;
    });
  }
}

function isOf(value: unknown, types: readonly string[]): boolean {
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  return types.includes(type) || (types.includes('integer') && Number.isInteger(value));
}

function first<T>(
  values: readonly T[],
  ask: (value: T, i: number) => string | undefined,
): string | undefined {
  for (const [i, value] of values.entries()) {
    const found = ask(value, i);
    if (found !== undefined) return found;
  }
  return undefined;
}
