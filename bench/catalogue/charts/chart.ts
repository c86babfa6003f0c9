/** Draws a chart of rows: names on the left, and bars or dots on a logarithmic axis. */
import { type Fill, filled, patterns } from './fills.ts';
import { logScale, tickText } from './log-scale.ts';
import { box, element, label, line } from './svg.ts';

export interface Bar {
  readonly value: number;
  readonly text: string;
  readonly fill: Fill;
}

export interface ChartRow {
  readonly id: string;
  readonly title: string;
  /** Thick lines that begin at the axis. */
  readonly bars?: readonly Bar[];
  /** A full dot, an open dot, and a line between them. */
  readonly span?: { readonly from: number; readonly to: number; readonly text: string };
}

export interface Group {
  readonly title: string;
  readonly rows: readonly ChartRow[];
}

export interface Chart {
  /** A word of letters that is unique among the drawings of the page. */
  readonly name: string;
  readonly title: string;
  /** The title of the axis, with the unit. */
  readonly axis: string;
  /** `from` and `to` are the dots of spans; `none` is for a line of text alone. */
  readonly legend: readonly (readonly [Fill | 'from' | 'to' | 'none', string])[];
  readonly groups: readonly Group[];
  /** A line across all rows. */
  readonly mark?: { readonly value: number; readonly text: string };
}

const WIDTH = 1_000;
const ID_X = 12;
const TITLE_X = 92;
const PLOT_X = 470;
const PLOT_END = 880;
const TOP = 78;
const GROUP_HEIGHT = 26;
const BAR_HEIGHT = 12;
const ROW_GAP = 6;
const AXIS_HEIGHT = 52;
const FONT = { 'font-family': 'DejaVu Sans, Verdana, Arial, sans-serif', 'font-size': 12, fill: '#222' };
const SMALL = { 'font-size': 11 };
const GRID = { stroke: '#ccc', 'stroke-width': 1 };
const DOT_RADIUS = 4.5;
const LEGEND_SIGN = 24;
const LEGEND_GAP = 16;
/** Approximate width of a small letter: no text can be measured here. */
const LETTER_WIDTH = 6.4;

/** One `<svg>` that needs nothing else. */
export function drawChart(chart: Chart): string {
  const rows = chart.groups.flatMap((group) => group.rows);
  const bottom = TOP + chart.groups.reduce((sum, group) => sum + groupHeight(group), 0);
  const height = bottom + AXIS_HEIGHT;
  const scale = logScale([...rows.flatMap(valuesOf), ...(chart.mark ? [chart.mark.value] : [])]);
  const x = (value: number) => PLOT_X + scale.at(value) * (PLOT_END - PLOT_X);
  const parts = [
    patterns(chart.name),
    box(0, 0, WIDTH, height, { fill: '#fff' }),
    label(ID_X, 26, chart.title, { 'font-size': 16, 'font-weight': 'bold' }),
    legend(chart),
    ...scale.ticks.flatMap((tick) => [
      line(x(tick), TOP, x(tick), bottom, GRID),
      label(x(tick), bottom + 18, tickText(tick), { 'text-anchor': 'middle', ...SMALL }),
    ]),
    line(PLOT_X, bottom, PLOT_END, bottom, { stroke: '#222' }),
    label((PLOT_X + PLOT_END) / 2, bottom + 40, chart.axis, { 'text-anchor': 'middle' }),
    ...(chart.mark ? markLine(chart.mark.text, x(chart.mark.value), bottom) : []),
    ...drawGroups(chart, x),
  ];
  const attributes = {
    xmlns: 'http://www.w3.org/2000/svg',
    viewBox: `0 0 ${WIDTH} ${height}`,
    role: 'img',
    'aria-label': `${chart.title}. ${chart.axis}.`,
    ...FONT,
  };
  return element('svg', attributes, ...parts);
}

function drawGroups(chart: Chart, x: (value: number) => number): string[] {
  let y = TOP;
  return chart.groups.flatMap((group) => {
    const heading = label(ID_X, y + 18, group.title, { 'font-weight': 'bold' });
    y += GROUP_HEIGHT;
    const drawn = group.rows.map((row) => {
      const top = y;
      y += rowHeight(row);
      return drawRow(chart.name, row, top, x);
    });
    return [heading, ...drawn];
  });
}

function drawRow(drawing: string, row: ChartRow, top: number, x: (value: number) => number): string {
  const middle = top + (rowHeight(row) - ROW_GAP) / 2;
  const bars = (row.bars ?? []).map((bar, i) => ({ ...bar, y: top + i * BAR_HEIGHT, end: x(bar.value) }));
  const { span } = row;
  return [
    label(ID_X, middle + 4, row.id),
    label(TITLE_X, middle + 4, row.title),
    ...bars
      .filter(({ value }) => value > 0)
      .map(({ y, end, fill }) =>
        box(PLOT_X, y, Math.max(1, end - PLOT_X), BAR_HEIGHT - 1, filled(drawing, fill)),
      ),
    ...bars.map(({ y, end, text }) => figure(end, y + BAR_HEIGHT - 2, text)),
    ...(span
      ? [
          line(x(span.from), middle, x(span.to), middle, { stroke: '#222', 'stroke-width': 2 }),
          dot(drawing, x(span.from), middle, 'solid'),
          dot(drawing, x(span.to), middle, 'hollow'),
          figure(x(span.to) + DOT_RADIUS, middle + 4, span.text),
        ]
      : []),
  ].join('');
}

/** Text after the end of a bar, on a white background, so that the grid does not run through it. */
function figure(end: number, baseline: number, text: string): string {
  return label(end + 5, baseline, text, {
    ...SMALL,
    stroke: '#fff',
    'stroke-width': 3,
    'paint-order': 'stroke',
  });
}

function legend({ name, legend: entries }: Chart): string {
  let x = ID_X;
  return entries
    .map(([what, text]) => {
      const signX = x;
      const textX = what === 'none' ? x : x + LEGEND_SIGN;
      x = textX + text.length * LETTER_WIDTH + LEGEND_GAP;
      return legendSign(name, what, signX) + label(textX, 54, text, SMALL);
    })
    .join('');
}

function legendSign(drawing: string, what: Chart['legend'][number][0], x: number): string {
  if (what === 'none') return '';
  if (what === 'from' || what === 'to') return dot(drawing, x + 8, 50, what === 'from' ? 'solid' : 'hollow');
  return box(x, 44, 18, 12, filled(drawing, what));
}

function markLine(text: string, x: number, bottom: number): string[] {
  return [
    line(x, TOP - 2, x, bottom, { stroke: '#222', 'stroke-width': 1.5, 'stroke-dasharray': '5 3' }),
    label(x, TOP - 6, text, { 'text-anchor': 'middle', ...SMALL }),
  ];
}

function dot(drawing: string, cx: number, cy: number, fill: Fill): string {
  const { fill: paint, stroke } = filled(drawing, fill);
  return element('circle', {
    cx: cx.toFixed(1),
    cy,
    r: DOT_RADIUS,
    fill: paint!,
    stroke: stroke!,
    'stroke-width': 1.5,
  });
}

function groupHeight({ rows }: Group): number {
  return GROUP_HEIGHT + rows.reduce((sum, row) => sum + rowHeight(row), 0);
}

function rowHeight({ bars }: ChartRow): number {
  return Math.max(1, bars?.length ?? 1) * BAR_HEIGHT + ROW_GAP;
}

function valuesOf({ bars, span }: ChartRow): number[] {
  return [...(bars ?? []).map(({ value }) => value), ...(span ? [span.from, span.to] : [])];
}
