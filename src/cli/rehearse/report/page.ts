/** The report as a page for a browser: one file that fetches nothing, in light and dark, wide, narrow and on paper. */
import { number, plural } from '../../terminal/output.ts';
import { type Chart, chartText, drawChart, escapeHtml as esc, figure, hasValues } from './charts.ts';
import type { Second } from './figures.ts';
import { countsText } from './judge.ts';
import { ms, type RehearsalReport } from './report.ts';

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2128; --faint: #57606a; --paper: #fff; --rule: #d0d7de; --box: #f6f8fa;
  --go: #116329; --no: #a40e26; --s0: #1a7f37; --s1: #0b62b8; --s2: #b35900; --s3: #a40e26; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9da7b1; --paper: #0d1117; --rule: #30363d; --box: #161b22;
  --go: #56d364; --no: #ff7b72; --s0: #3fb950; --s1: #58a6ff; --s2: #e3a14f; --s3: #ff7b72; } }
@media print { :root { color-scheme: light; --ink: #000; --faint: #444; --paper: #fff; --rule: #bbb; --box: #fff; --go: #116329;
  --no: #a40e26; --s0: #1a7f37; --s1: #0b62b8; --s2: #b35900; --s3: #a40e26; } section, figure, li { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }
h1 { font-size: 2rem; line-height: 1.2; margin: .5rem 0; } h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; }
.go h1 { color: var(--go); } .no h1 { color: var(--no); }
ol li, ul li { margin-bottom: .75rem; } .advice, .faint, figcaption, summary { color: var(--faint); }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .25rem 1rem; margin: 0; } dt { color: var(--faint); } dd { margin: 0; }
figure { margin: 1rem 0; padding: .75rem; background: var(--box); border: 1px solid var(--rule); border-radius: 6px; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 12px; fill: var(--faint); }
.grid { stroke: var(--rule); stroke-width: 1; } .line { fill: none; stroke-width: 2; } .bound { stroke: var(--no); stroke-width: 1; stroke-dasharray: 8 4; }
.line.s0 { stroke: var(--s0); } .line.s1 { stroke: var(--s1); } .line.s2 { stroke: var(--s2); } .line.s3 { stroke: var(--s3); }
rect.s0 { fill: var(--s0); } rect.s1 { fill: var(--s1); } rect.s2 { fill: var(--s2); } rect.s3 { fill: var(--s3); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 .8em; } .k0 { background: var(--s0); } .k1 { background: var(--s1); } .k2 { background: var(--s2); } .k3 { background: var(--s3); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; vertical-align: top; } .left th, .left td { text-align: left; }
/* A chart shrinks with the page, and its text with it. */
@media (max-width: 30rem) { svg text { font-size: 22px; } }
.key { print-color-adjust: exact; } rect, path { print-color-adjust: exact; }
`;

const round = (value: number | undefined, digits = 0) =>
  value === undefined ? undefined : Number(value.toFixed(digits));

function chartsOf({ seconds, plan }: Pick<RehearsalReport, 'seconds' | 'plan'>): Chart[] {
  const values = (name: string, pick: (second: Second) => number | undefined) => ({
    name,
    values: seconds.map(pick),
  });
  const charts: Chart[] = [
    {
      ...{ title: 'Requests in each second, by how they ended', unit: 'requests', stacked: true },
      series: [
        values('sold', ({ sold }) => sold),
        values('refused', ({ refused }) => refused),
        values('refused by admission', ({ limited }) => limited),
        values('no answer', ({ open }) => open),
      ],
    },
    {
      ...{ title: 'Time to the answer', unit: 'ms', bound: { name: 'wanted', value: plan.goodMs } },
      series: [
        values('half', ({ p50Ms }) => round(p50Ms, 2)),
        values('99 of 100', ({ p99Ms }) => round(p99Ms, 2)),
        values('slowest', ({ maxMs }) => round(maxMs, 2)),
      ],
    },
    {
      title: 'Stock',
      unit: 'units',
      series: [
        values('units left', ({ unitsLeft }) => unitsLeft),
        values('orders not yet in Postgres', ({ lagOrders }) => lagOrders),
      ],
    },
    {
      title: 'Processors',
      unit: 'cores',
      series: [
        values('nodes', ({ nodeCores }) => round(nodeCores, 2)),
        values('Redis', ({ redisCores }) => round(redisCores, 2)),
      ],
    },
    {
      title: 'Delays',
      unit: 'ms',
      series: [
        values('event loop of the nodes (p99)', ({ loopP99Ms }) => round(loopP99Ms, 1)),
        values('the crowd itself', ({ lateMs }) => round(lateMs, 1)),
      ],
    },
    {
      title: 'Replicas of Redis',
      unit: 'bytes behind',
      series: [values('farthest behind', ({ replicaBehindBytes }) => replicaBehindBytes)],
    },
  ];
  return charts.filter(hasValues).map((chart) => ({
    ...chart,
    series: chart.series.filter((series) => hasValues({ ...chart, series: [series] })),
  }));
}

export function reportPage(report: RehearsalReport): string {
  const { go, reasons, remarks, begunAt, plan, nodes, backend, database } = report;
  const verdict = go ? 'GO' : 'NO-GO';
  const intro = go
    ? `At ${number(plan.rate)} requests a second, everything held.`
    : `${plural(reasons.length, 'reason')}, the gravest first:`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${verdict}: rehearsal of ${esc(begunAt)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<header class="${go ? 'go' : 'no'}">
<p class="faint">Stockade: a rehearsal, ${esc(begunAt)}</p>
<h1>${verdict}</h1>
<p>${intro}</p>
</header>
${reasons.length === 0 ? '' : `<ol>${reasons.map(({ what, advice }) => `<li>${esc(what)}<br><span class="advice">What to do: ${esc(advice)}</span></li>`).join('\n')}</ol>`}
${summary(report)}
${sizes(report)}
${report.seconds.length === 0 ? '' : `<section><h2>Second by second</h2>${chartsOf(report).map(figureOf).join('\n')}${table(report.seconds)}</section>`}
${remarks.length === 0 ? '' : `<section><h2>Remarks</h2><ul>${remarks.map((remark) => `<li>${esc(remark)}</li>`).join('')}</ul></section>`}
${checks(report)}
<section><h2>What was rehearsed</h2><dl>
${pairs([
  ['Nodes', nodes.length === 0 ? 'none was started' : nodes.join(', ')],
  ['Stock in', backend ?? 'not known'],
  ['Orders in', database ?? 'not known'],
  ['Sale', report.saleId ?? 'none was created'],
  [
    'Crowd',
    `${plural(plan.buyers, 'buyer')}, up to ${number(plan.rate)} requests/s for ${plural(plan.seconds, 'second')}, ${plan.arrivals}`,
  ],
  ['Stock', `${plural(plan.stock, 'unit')} in ${plural(plan.segments, 'segment')}, one per buyer`],
])}
</dl></section>
</main>
</body>
</html>
`;
}

const pairs = (all: readonly (readonly [string, string])[]) =>
  all.map(([name, value]) => `<dt>${esc(name)}</dt><dd>${esc(value)}</dd>`).join('\n');

function summary({ sold, totals, brokeFirst, drainSeconds }: RehearsalReport): string {
  if (!sold || !totals) return '';
  return `<section><h2>What happened</h2><dl>
${pairs([
  ['Sold', `${plural(sold.orders, 'order')}${sold.left === undefined ? '' : `; ${number(sold.left)} left`}`],
  ['Asked', `${plural(sold.buyersAsked, 'buyer')}, ${plural(totals.requests, 'request')}`],
  ['Answers', countsText(totals.ended)],
  ['Asked again', countsText(totals.repeated) || 'never'],
  [
    'Time to the answer',
    `half within ${ms(totals.p50Ms)}, 99 of 100 within ${ms(totals.p99Ms)}, the slowest ${ms(totals.maxMs)}`,
  ],
  [
    'Then',
    drainSeconds === undefined
      ? 'not all orders came into Postgres in time'
      : `${drainSeconds.toFixed(1)} s until all orders were in Postgres`,
  ],
  ['Broke first', brokeFirst ?? 'Nothing left its bounds.'],
])}
</dl></section>`;
}

function sizes({ sizes: all }: RehearsalReport): string {
  if (all.length === 0) return '';
  return `<section><h2>Size for the wanted rate</h2><dl>${pairs(all.map(({ what, text }) => [what, text] as const))}</dl></section>`;
}

function figureOf(chart: Chart): string {
  const keys = chart.series.map(({ name }, i) => `<span class="key k${i}"></span>${esc(name)}`).join('');
  const bound = chart.bound ? ` Wanted: at most ${figure(chart.bound.value)} ${esc(chart.unit)}.` : '';
  return `<figure><strong>${esc(chart.title)}</strong> <span class="faint">${esc(chart.unit)}</span>${drawChart(chart)}<figcaption>${keys}.${bound} ${esc(chartText(chart))}</figcaption></figure>`;
}

function table(seconds: readonly Second[]): string {
  const cell = (value: number | undefined, digits = 0) =>
    `<td>${value === undefined ? '–' : figure(Number(value.toFixed(digits)))}</td>`;
  const head = [
    'second',
    'due',
    'sold',
    'refused',
    'asked again',
    'no answer',
    'p50 ms',
    'p99 ms',
    'left',
    'not in Postgres',
    'node cores',
    'Redis cores',
  ];
  const rows = seconds.map(
    (one) =>
      `<tr><td>${one.second + 1}</td>${[one.due, one.sold, one.refused + one.limited, one.repeated, one.open].map((value) => cell(value)).join('')}${cell(one.p50Ms, 1)}${cell(one.p99Ms, 1)}${cell(one.unitsLeft)}${cell(one.lagOrders)}${cell(one.nodeCores, 2)}${cell(one.redisCores, 2)}</tr>`,
  );
  return `<details><summary>All figures as a table</summary><div class="scroll" tabindex="0" role="region" aria-label="All figures"><table><thead><tr>${head.map((name) => `<th scope="col">${name}</th>`).join('')}</tr></thead><tbody>${rows.join('\n')}</tbody></table></div></details>`;
}

function checks({ checks: all }: RehearsalReport): string {
  if (all.length === 0) return '';
  const rows = all.map(
    ({ status, group, name, found }) =>
      `<tr><td>${status}</td><td>${esc(group)} ${esc(name)}</td><td>${esc(found)}</td></tr>`,
  );
  return `<section><h2>Checks before the rush</h2><details><summary>${plural(all.length, 'check')}</summary><div class="scroll" tabindex="0" role="region" aria-label="Checks"><table class="left"><thead><tr><th scope="col">status</th><th scope="col">check</th><th scope="col">found</th></tr></thead><tbody>${rows.join('\n')}</tbody></table></div></details></section>`;
}
