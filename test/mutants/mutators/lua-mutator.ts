/** Bugs in Lua: conditions negated, comparisons shifted, operands and statements dropped, numbers off by one. */
import { type Chunk, type Expression, type Node, parse, type Statement } from 'luaparse';
import type { Change } from '../mutant.ts';

/** Another operator whose result differs at the boundary, or everywhere else. */
const SHIFTED: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '==': ['~='],
  '~=': ['=='],
};
const ARITHMETIC: Readonly<Record<string, string>> = { '+': '-', '-': '+', '*': '/', '/': '*' };

type Ranged<T> = T & { readonly range: readonly [number, number] };

/** @throws SyntaxError */
export function parseLua(text: string): Chunk {
  return parse(text, { luaVersion: '5.1', ranges: true, comments: false });
}

export function luaChanges(text: string): Change[] {
  const changes: Change[] = [];
  const rangeOf = (node: Node) => (node as Ranged<Node>).range;
  const wordsOf = (node: Node) => text.slice(...rangeOf(node));
  const add = (mutator: string, [start, end]: readonly [number, number], replacement: string) => {
    changes.push({ mutator, start, end, replacement });
  };
  /** Replaces the operator between two operands; comments and brackets there stay. */
  const operator = (mutator: string, left: Node, right: Node, from: string, to: string) => {
    const [start, end] = [rangeOf(left)[1], rangeOf(right)[0]];
    const at = text.slice(start, end).indexOf(from);
    add(mutator, [start + at, start + at + from.length], to);
  };
  const statement = (node: Statement) => {
    switch (node.type) {
      case 'CallStatement':
      case 'AssignmentStatement':
      case 'IfStatement':
      case 'ReturnStatement':
      case 'BreakStatement':
        add('StatementDropped', rangeOf(node), '');
    }
  };
  const condition = (node: Expression) => add('ConditionNegated', rangeOf(node), `not (${wordsOf(node)})`);

  const visit = (node: Node) => {
    switch (node.type) {
      case 'IfClause':
      case 'ElseifClause':
      case 'WhileStatement':
      case 'RepeatStatement':
        condition(node.condition);
        break;
      case 'LogicalExpression':
        add('OperandDropped', rangeOf(node), wordsOf(node.left));
        add('OperandDropped', rangeOf(node), wordsOf(node.right));
        break;
      case 'UnaryExpression':
        if (node.operator === 'not') add('NotDropped', rangeOf(node), wordsOf(node.argument));
        break;
      case 'BinaryExpression': {
        const { operator: from, left, right } = node;
        for (const to of SHIFTED[from] ?? []) operator('ComparisonShifted', left, right, from, to);
        const other = ARITHMETIC[from];
        if (other !== undefined) operator('ArithmeticSwapped', left, right, from, other);
        break;
      }
      case 'NumericLiteral':
        add('NumberShifted', rangeOf(node), String(node.value + 1));
        break;
      case 'BooleanLiteral':
        add('BooleanNegated', rangeOf(node), String(!node.value));
        break;
    }

    for (const [name, child] of Object.entries(node)) {
      // A constant index, as in `KEYS[1]` and `now[2]`, names a value. With another number the script would fail at
      // once.
      if (node.type === 'IndexExpression' && name === 'index' && isNumber(child)) continue;
      for (const one of Array.isArray(child) ? child : [child]) {
        if (!isNode(one)) continue;
        if (name === 'body') statement(one as Statement);
        visit(one);
      }
    }
  };
  visit(parseLua(text));
  return changes.sort((a, b) => a.start - b.start || a.end - b.end);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}

function isNumber(value: unknown): boolean {
  return isNode(value) && value.type === 'NumericLiteral';
}
