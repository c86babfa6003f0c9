/** Charts of a page as inline SVG. Each has a text that says what it shows, and a table for those who can't see it (page.ts). */

export interface Series {
  readonly name: string;
  /** One value a second; `undefined`: not measured. */
  readonly values: readonly (number | undefined)[];
}

export interface Chart {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
  /** Bars on top of each other instead of lines. */
  readonly stacked?: boolean;
  /** A bound to keep, drawn as a line across. */
  readonly bound?: { readonly name: string; readonly value: number };
}

const [WIDTH, HEIGHT] = [640, 220];
const PLACE = { left: 56, right: 8, top: 8, bottom: 24 };
const PLOT = { width: WIDTH - PLACE.left - PLACE.right, height: HEIGHT - PLACE.top - PLACE.bottom };
const TICKS = 4;
/** Lines differ in their dashes too, not only in colour. */
const DASHES = ['', '6 3', '2 3'];

export function hasValues({ series }: Chart): boolean {
  return series.some(({ values }) => values.some((value) => value !== undefined));
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A round number that is not below the value. */
export function roundAbove(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 4, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999_999)!;
}

export function figure(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 0 });
}

/** What the chart shows, in a sentence: the highest value of each series, and when. */
export function chartText({ title, unit, series, bound }: Chart): string {
  const peaks = series.flatMap(({ name, values }) => {
    const known = values.map((value) => value ?? Number.NEGATIVE_INFINITY);
    const peak = Math.max(...known);
    return Number.isFinite(peak)
      ? [`${name} at most ${figure(peak)} ${unit} in second ${known.indexOf(peak) + 1}`]
      : [];
  });
  return `${title}: ${peaks.join('; ')}${bound ? `; bound ${figure(bound.value)} ${unit}` : ''}.`;
}

export function drawChart(chart: Chart): string {
  const { series, bound, stacked } = chart;
  const seconds = Math.max(...series.map(({ values }) => values.length));
  const sums = Array.from({ length: seconds }, (_, at) =>
    series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0),
  );
  const all = stacked ? sums : series.flatMap(({ values }) => values.filter((value) => value !== undefined));
  const highest = Math.max(0, ...all);
  // A bound far above all values would flatten them.
  const shownBound = bound && bound.value <= highest * 2 ? bound : undefined;
  const top = roundAbove(Math.max(highest, shownBound?.value ?? 0));
  const y = (value: number) => PLACE.top + PLOT.height * (1 - value / top);
  const x = (at: number) => PLACE.left + (PLOT.width * at) / seconds;
  const drawn = stacked ? bars(chart, x, y) : series.map((one, i) => line(one, i, x, y)).join('');
  const across = shownBound
    ? `<path class="bound" d="M${PLACE.left} ${y(shownBound.value).toFixed(1)}H${WIDTH - PLACE.right}"/>`
    : '';
  const label = escapeHtml(chartText(chart));
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">${grid(top, y)}${times(seconds, x)}${drawn}${across}</svg>`;
}

function grid(top: number, y: (value: number) => number): string {
  return Array.from({ length: TICKS + 1 }, (_, i) => {
    const value = (top * i) / TICKS;
    const at = y(value).toFixed(1);
    return `<path class="grid" d="M${PLACE.left} ${at}H${WIDTH - PLACE.right}"/><text x="${PLACE.left - 6}" y="${at}" dy="4" text-anchor="end">${figure(value)}</text>`;
  }).join('');
}

function times(seconds: number, x: (at: number) => number): string {
  const step = Math.max(1, roundAbove(seconds / 8));
  const marks = Array.from({ length: Math.floor(seconds / step) + 1 }, (_, i) => Math.round(i * step));
  return marks
    .map(
      (at) =>
        `<text x="${x(at).toFixed(1)}" y="${HEIGHT - 6}" text-anchor="${at === 0 ? 'start' : 'middle'}">${at}${at === 0 ? ' s' : ''}</text>`,
    )
    .join('');
}

function line(
  { values }: Series,
  i: number,
  x: (at: number) => number,
  y: (value: number) => number,
): string {
  let path = '';
  for (const [at, value] of values.entries()) {
    if (value === undefined) continue;
    const isFirst = path === '' || values[at - 1] === undefined;
    path += `${isFirst ? 'M' : 'L'}${x(at + 0.5).toFixed(1)} ${y(value).toFixed(1)}`;
    if (isFirst && values[at + 1] === undefined) path += 'h1';
  }
  const dashes = DASHES[i] ? ` stroke-dasharray="${DASHES[i]}"` : '';
  return `<path class="line s${i}"${dashes} d="${path}"/>`;
}

function bars({ series }: Chart, x: (at: number) => number, y: (value: number) => number): string {
  const below: number[] = [];
  return series
    .map(({ values }, i) =>
      values
        .map((value, at) => {
          const base = below[at] ?? 0;
          below[at] = base + (value ?? 0);
          if (!value) return '';
          const [left, width] = [x(at) + 0.5, Math.max(0.5, x(at + 1) - x(at) - 1)];
          return `<rect class="s${i}" x="${left.toFixed(1)}" y="${y(base + value).toFixed(1)}" width="${width.toFixed(1)}" height="${(y(base) - y(base + value)).toFixed(1)}"/>`;
        })
        .join(''),
    )
    .join('');
}
