/** Text of HTML, and the frame of the pages that explain a port. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { KeptReply } from '../server/conditional.ts';

/** Text that is HTML already. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Html | undefined | readonly Part[];

/** A template whose values are escaped, unless they are HTML. Arrays are joined; `undefined` is left out. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(texts.reduce((all, text, i) => all + textOf(parts[i - 1]) + text));
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function textOf(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(textOf).join('');
  return String(part).replace(/[&<>"']/g, (character) => ESCAPES[character]!);
}

/** Plain text with `code` in backquotes. */
export function prose(text: string): Html {
  return html`${text.split(/`([^`]*)`/).map((part, i) => (i % 2 === 0 ? part : html`<code>${part}</code>`))}`;
}

/** The build copies it here (scripts/build.mjs). */
const STYLE = readFileSync(new URL('./page.css', import.meta.url), 'utf8');

/** Nothing from elsewhere, no script, and no style but the one of this page. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
};

/** A page, ready to be sent. */
export function page(title: string, content: Html): KeptReply {
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Html(STYLE)}</style>
</head>
<body>
<header><nav aria-label="This port"><a href="/docs">Routes</a> <a href="/problems">Problems</a> <a href="/openapi.json">openapi.json</a></nav></header>
<main>${content}</main>
</body>
</html>
`;
  return new KeptReply('text/html; charset=utf-8', text, HEADERS);
}
