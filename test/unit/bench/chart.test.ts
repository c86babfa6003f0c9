import { describe, expect, test } from 'vitest';
import { type Bar, type Chart, type ChartRow, drawChart } from '../../../bench/catalogue/charts/chart.ts';

function drawn(row: Partial<ChartRow>, more: Partial<Chart> = {}): string {
  const rows = [{ id: 'A1', title: 'first', ...row }];
  return drawChart({
    name: 'test',
    title: 'title',
    axis: 'units',
    legend: [],
    groups: [{ title: 'A', rows }],
    ...more,
  });
}

function barsIn(svg: string): number {
  return svg.match(/<rect [^>]*stroke="#222"/g)?.length ?? 0;
}

const bar = (value: number): Bar => ({ value, text: `${value}!`, fill: 'solid' });

describe('drawChart', () => {
  test('draws a bar for each figure, with its text after it', () => {
    const svg = drawn({ bars: [bar(10), bar(1_000)] });
    expect(barsIn(svg)).toBe(2);
    expect(svg).toContain('>10!<');
    expect(svg).toContain('>1000!<');
  });

  test('draws no bar for zero, and writes the value', () => {
    const svg = drawn({ bars: [bar(0)] });
    expect(barsIn(svg)).toBe(0);
    expect(svg).toContain('>0!<');
  });

  test('makes room for every row', () => {
    const height = (svg: string) => Number(/viewBox="0 0 1000 (\d+)"/.exec(svg)![1]);
    expect(height(drawn({ bars: [bar(1), bar(2)] }))).toBeGreaterThan(height(drawn({ bars: [bar(1)] })));
  });

  test('draws a span as a full dot, an open one and a line', () => {
    const svg = drawn({ span: { from: 1, to: 100, text: '' } });
    expect([...svg.matchAll(/<circle [^>]*r="4.5" fill="(#\w+)"/g)].map(([, fill]) => fill)).toEqual([
      '#222',
      '#fff',
    ]);
  });

  test('escapes markup in texts', () => {
    expect(drawn({ title: 'a < b & "c"' })).toContain('>a &lt; b &amp; &quot;c&quot;<');
  });
});
