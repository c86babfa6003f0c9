/** The pages to which the `type` of a problem leads: what the code means, and what a client should do. */
import type { KeptReply } from '../server/conditional.ts';
import { kindOf, type ProblemCode, typeOf } from '../server/replies/problem-kinds.ts';
import { html, page, prose } from './html.ts';

/** One code. @param example an answer, as the port's description has it */
export function problemPage(code: ProblemCode, example: unknown): KeptReply {
  const { status, title, means, remedy } = kindOf(code);
  const content = html`<h1>${title}</h1>
<dl>
<dt>Code</dt><dd><code>${code}</code></dd>
<dt>Status</dt><dd>${status}</dd>
<dt>What it means</dt><dd>${prose(means)}</dd>
<dt>What the client should do</dt><dd>${prose(remedy)}</dd>
</dl>
<h2>Example</h2>
<pre tabindex="0">${JSON.stringify(example, null, 2)}</pre>
<p>Programs should read <code>code</code>: it does not change. <a href="/problems">All codes</a></p>`;
  return page(`${code} · Stockade`, content);
}

/** All codes of a port. */
export function problemsPage(codes: readonly ProblemCode[]): KeptReply {
  const rows = codes.map((code) => {
    const { status, title } = kindOf(code);
    return html`<tr><td><a href="${typeOf(code)}"><code>${code}</code></a></td><td>${status}</td><td>${title}</td></tr>\n`;
  });
  const content = html`<h1>Problems</h1>
<p>An answer that is no success is a problem by RFC 9457, with the content type <code>application/problem+json</code>. Programs
should read its <code>code</code>; its <code>type</code> names the page of the code. These are the codes of this port.</p>
<div class="wide"><table><thead><tr><th>Code</th><th>Status</th><th>Title</th></tr></thead><tbody>
${rows}</tbody></table></div>`;
  return page('Problems · Stockade', content);
}
