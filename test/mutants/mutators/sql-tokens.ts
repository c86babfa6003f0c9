/** Splits SQL into tokens, each with its depth. Keywords are in upper case, as everywhere in this repository. */
export type TokenKind = 'word' | 'number' | 'text' | 'operator' | 'hole';

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** How many brackets and `CASE`s are open around the token. An opening bracket counts as inside. */
  readonly depth: number;
}

/** The first form that matches wins. A `hole` is a binding, or an expression in a TypeScript template. */
const FORMS: readonly (readonly [TokenKind | 'blank', RegExp])[] = [
  ['blank', /\s+|--[^\n]*|\/\*[\s\S]*?\*\//y],
  ['hole', /\$\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\?+|\$\d+/y],
  ['text', /E?'(?:[^']|'')*'/y],
  ['word', /"[^"]*"|[A-Za-z_]\w*/y],
  ['number', /\d+(?:\.\d+)?/y],
  ['operator', /\$\$|::|:=|\.\.|<>|!=|<=|>=|->>|->|\|\||[^\s\w]/y],
];

export function sqlTokens(text: string): Token[] {
  const tokens: Token[] = [];
  let depth = 0;
  for (let at = 0; at < text.length; ) {
    const [kind, words] = formAt(text, at);
    const end = at + words.length;
    const closes = /^[)\]]$|^END$/.test(words) && depth > 0 && !endsBlock(text, words, end);
    if (closes && words !== 'END') depth--;
    if (kind !== 'blank') tokens.push({ kind, text: words, start: at, end, depth });
    if (closes && words === 'END') depth--;
    if (/^[([]$|^CASE$/.test(words)) depth++;
    at = end;
  }
  return tokens;
}

/** The `END` of `END IF` and `END LOOP` does not end a `CASE`. */
function endsBlock(text: string, words: string, end: number): boolean {
  return words === 'END' && /^\s+(IF|LOOP)\b/.test(text.slice(end));
}

function formAt(text: string, at: number): [TokenKind | 'blank', string] {
  for (const [kind, form] of FORMS) {
    form.lastIndex = at;
    const found = form.exec(text);
    if (found) return [kind, found[0]];
  }
  throw new Error(`SQL can't be read from ${JSON.stringify(text.slice(at, at + 20))}`);
}
