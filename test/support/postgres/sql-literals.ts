/** The SQL statements that the source holds, read from its syntax trees. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'vitest/node';

/** A literal with SQL. */
export interface SqlLiteral {
  /** File and line. */
  readonly at: string;
  /** The fixed parts; more than one if something is put between them. */
  readonly parts: readonly string[];
}

interface Node {
  readonly type: string;
  readonly start: number;
}
interface Identifier extends Node {
  readonly name: string;
}
interface Literal extends Node {
  readonly value: unknown;
}
interface Template extends Node {
  readonly quasis: readonly { readonly value: { readonly cooked: string } }[];
  readonly expressions: readonly Node[];
}
interface Declarator extends Node {
  readonly id: Identifier;
  readonly init: Node | null;
}

type Constants = Map<string, readonly string[]>;

/** All literals below `folder` that match. Constants of the same file, and `LIVE`, are put in where they are named. */
export function sqlLiterals(folder: string, matching: RegExp): SqlLiteral[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  return files.flatMap((name) => {
    const text = readFileSync(join(folder, name), 'utf8');
    const constants: Constants = new Map([['LIVE', ["('unpaid', 'paid', 'redeemed')"]]]);
    const nodes = [...nodesOf(parseAst(text, { lang: 'ts' }) as unknown as Node)];
    // Twice: a constant may stand behind its use.
    for (const node of [...nodes, ...nodes]) {
      const { id, init } = node as Declarator;
      const parts = node.type === 'VariableDeclarator' && init ? partsOf(init, constants) : undefined;
      if (parts) constants.set(id.name, parts);
    }
    return nodes.flatMap((node) => {
      const parts = partsOf(node, constants);
      if (!parts || !matching.test(parts.join(' '))) return [];
      return [{ at: `${name}:${text.slice(0, node.start).split('\n').length}`, parts }];
    });
  });
}

function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (const value of Object.values(node)) {
    for (const inner of Array.isArray(value) ? value : [value]) {
      if (typeof inner?.type === 'string') yield* nodesOf(inner as Node);
    }
  }
}

function partsOf(node: Node, constants: Constants): string[] | undefined {
  const { value } = node as Literal;
  if (node.type === 'Literal' && typeof value === 'string') return [value];
  if (node.type !== 'TemplateLiteral') return undefined;
  const { quasis, expressions } = node as Template;
  const parts = [quasis[0]!.value.cooked];
  for (const [i, expression] of expressions.entries()) {
    const text = quasis[i + 1]!.value.cooked;
    const known = expression.type === 'Identifier' && constants.get((expression as Identifier).name);
    if (!known) parts.push(text);
    else parts.push(...`${parts.pop()}${known.join('\0')}${text}`.split('\0'));
  }
  return parts;
}

export const plain = (sql: string) => sql.replaceAll(/\$\d+/g, '?').replaceAll(/\s+/g, ' ').trim();

/** Whether the statement holds all parts of the literal, in their order. */
export function isOf({ parts }: SqlLiteral, statement: string): boolean {
  let at = 0;
  return parts.map(plain).every((part) => {
    const found = statement.indexOf(part, at);
    at = found + part.length;
    return found >= 0;
  });
}
