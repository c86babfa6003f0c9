/** SVG as text. */

export type Attributes = Readonly<Record<string, string | number>>;

export function element(name: string, attributes: Attributes, ...children: readonly string[]): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(String(value))}"`);
  const opening = `<${name}${written.join('')}`;
  return children.length === 0 ? `${opening}/>` : `${opening}>${children.join('')}</${name}>`;
}

export function label(x: number, y: number, text: string, attributes: Attributes = {}): string {
  return element('text', { x: tenths(x), y: tenths(y), ...attributes }, escaped(text));
}

export function line(x1: number, y1: number, x2: number, y2: number, attributes: Attributes): string {
  return element('line', { x1: tenths(x1), y1: tenths(y1), x2: tenths(x2), y2: tenths(y2), ...attributes });
}

export function box(x: number, y: number, width: number, height: number, attributes: Attributes): string {
  const place = { x: tenths(x), y: tenths(y), width: tenths(width), height: tenths(height) };
  return element('rect', { ...place, ...attributes });
}

export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

/** Rounds to a tenth of a pixel: more is invisible. */
function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
