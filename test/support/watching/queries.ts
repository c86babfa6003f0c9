/** The queries of the board and of the alert rules in deploy/. */
import { readFileSync } from 'node:fs';

const read = (path: string) => readFileSync(new URL(`../../../deploy/${path}`, import.meta.url), 'utf8');

export interface Alert {
  readonly name: string;
  readonly expr: string;
  /** `docs/….md#heading` */
  readonly runbook: string;
}

export function alerts(): Alert[] {
  return read('prometheus/alerts.yml')
    .split('- alert: ')
    .slice(1)
    .map((text) => ({
      name: /^\w+/.exec(text)![0],
      expr: /^\s+expr: (.*)$/m.exec(text)![1]!,
      runbook: /^\s+runbook: (.*)$/m.exec(text)![1]!,
    }));
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

/** @returns the queries by the title of their panel, with the variables of Grafana filled in */
export function boardQueries(): { readonly title: string; readonly expr: string }[] {
  const { panels } = JSON.parse(read('grafana/stockade.json')) as { panels: Panel[] };
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({
      title,
      expr: expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$(instance|sale)\b/g, '.*'),
    })),
  );
}

/** Metrics in a query. A histogram has several series; the name of the metric has no suffix. */
export function metricsIn(expr: string): string[] {
  const names = expr.replaceAll(/"[^"]*"/g, '').match(/\b(?:stockade|process|nodejs)_[a-z0-9_]+/g) ?? [];
  return names.map((name) =>
    name
      .replace(/_seconds_(bucket|sum|count)$/, '_seconds')
      .replace(/_orders_(bucket|sum|count)$/, '_orders'),
  );
}

/** The values that an alert compares: its query without the comparisons. */
export function valuesOf({ expr }: Alert): string[] {
  return expr.split(/ unless | and /).map((side) => {
    const [, value] = /^(.*) [<>] [\d.]+$/.exec(side) ?? [];
    if (value === undefined) throw new Error(`${side} does not end with a comparison`);
    return value;
  });
}
