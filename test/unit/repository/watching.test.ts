/** The board and the alert rules of deploy/: they name metrics that exist, and sections that say what to do. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { anchorsOf } from '../../support/pages/markdown.ts';
import { alerts, boardQueries, metricsIn } from '../../support/watching/queries.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
/** A test compares this page with the source (readme.test.ts). */
const documented = new Set(
  read('docs/operations/metrics.md').match(/\b(?:stockade|process|nodejs)_[a-z0-9_]+/g),
);

const known = (metrics: readonly string[]) =>
  metrics.length > 0 && metrics.every((name) => documented.has(name));

test.each(alerts())('$name is about metrics that exist', ({ name, expr }) => {
  if (['StockadeDown', 'StockadeNoProcess'].includes(name)) expect(expr).toContain('up{');
  else expect(known(metricsIn(expr)), expr).toBe(true);
});

test.each(boardQueries())('the panel "$title" shows a metric that exists: $expr', ({ expr }) => {
  expect(known(metricsIn(expr)) || expr.includes('up{'), expr).toBe(true);
});

test('a metric that does not exist is noticed', () => {
  expect(known(metricsIn('sum(rate(stockade_sync_orders_total[1m]))'))).toBe(true);
  expect(known(metricsIn('sum(rate(stockade_synced_orders_total[1m]))'))).toBe(false);
});

test.each(alerts())('the section that $name links to says what to do', ({ name, runbook }) => {
  const [path, anchor] = runbook.split('#') as [string, string];
  const page = read(path);
  expect(anchorsOf(page)).toContain(anchor);
  const section = page.split(/^(?=#+ )/m).find((text) => anchorsOf(text).has(anchor))!;
  expect(section).toContain(`\`${name}\``);
});

test('each alarm of the page that is a metric has a rule', () => {
  const page = read('docs/operations/alarms.md');
  const named = new Set(page.match(/`Stockade\w+`/g)?.map((name) => name.slice(1, -1)));
  expect([...named].sort()).toEqual(
    alerts()
      .map(({ name }) => name)
      .sort(),
  );
});
