/** The page: one file that can be opened anywhere, printed, or sent. */
import { escaped } from './charts/svg.ts';
import { callsChart, latencyChart, ordersChart, requestsChart, soldChart } from './pictures.ts';
import { crowdTitle, origin, remarks, sellingTitle } from './report.ts';
import type { CatalogueResult } from './result.ts';
import { crowdTable, namingTable, sellingTable, type Table } from './tables.ts';

const STYLE = `
body { font: 15px/1.5 "DejaVu Sans", Verdana, Arial, sans-serif; color: #222; background: #fff;
  max-width: 1000px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.2em; margin-top: 2.5em; }
svg { width: 100%; height: auto; margin: 1.5em 0; break-inside: avoid; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; white-space: nowrap; }
th, td { padding: 2px 7px; border-bottom: 1px solid #ddd; text-align: left; }
th { vertical-align: bottom; }
th, td:nth-child(2) { white-space: normal; } td:nth-child(2) { min-width: 15em; } .right { text-align: right; font-variant-numeric: tabular-nums; }
code { font-size: 0.9em; }
`;

export function page(result: CatalogueResult): string {
  const { parameters } = result;
  const [machine, command] = origin(result) as [string, string];
  const title = 'Ways of selling a limited stock, measured side by side';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${title}</h1>
<p>Every row of Stockade's catalogue, one after the other, with the same ${parameters.clients} clients on ${parameters.nodes}
nodes in one process. Each client asks again when it has been answered.</p>
<p>Machine: ${escaped(machine)}. Clients, nodes and stores share it.<br>
Measured: ${escaped(result.measuredAt.slice(0, 16).replace('T', ' '))} UTC.<br>
Command: <code>npm run bench:catalogue -- ${escaped(command)}</code></p>
${list(remarks(result))}
<h2>${escaped(sellingTitle())}</h2>
${ordersChart(result)}
${latencyChart(result)}
${callsChart(result)}
<h2>${escaped(crowdTitle(result))}</h2>
${soldChart(result)}
${requestsChart(result)}
<h2>Figures: ${lowerFirst(sellingTitle())}</h2>
${htmlTable(sellingTable(result))}
<h2>Figures: ${escaped(lowerFirst(crowdTitle(result)))}</h2>
${htmlTable(crowdTable(result))}
<h2>Figures: order ids</h2>
${htmlTable(namingTable(result))}
</body>
</html>
`;
}

function list(lines: readonly string[]): string {
  return `<ul>\n${lines.map((line) => `<li>${escaped(line)}</li>`).join('\n')}\n</ul>`;
}

function htmlTable({ head, align, rows }: Table): string {
  const cells = (name: string, texts: readonly string[]) =>
    texts
      .map((text, i) => `<${name}${align[i] === 'right' ? ' class="right"' : ''}>${escaped(text)}</${name}>`)
      .join('');
  const lines = [cells('th', head), ...rows.map((row) => cells('td', row))];
  return `<div class="wide"><table>\n${lines.map((line) => `<tr>${line}</tr>`).join('\n')}\n</table></div>`;
}

function lowerFirst(text: string): string {
  return text[0]!.toLowerCase() + text.slice(1);
}
