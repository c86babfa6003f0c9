/** How bars are filled: by patterns and not by colours, so that they differ on any paper and for every eye. */
import { box, element, line } from './svg.ts';

export type Fill = 'solid' | 'hatched' | 'dotted' | 'hollow';

const INK = '#222';

/** `<defs>` with the patterns, once in each drawing. Their names are unique to the drawing. */
export function patterns(drawing: string): string {
  const tile = { width: 6, height: 6, patternUnits: 'userSpaceOnUse' };
  const paper = box(0, 0, 6, 6, { fill: '#fff' });
  const stripe = line(0, 0, 0, 6, { stroke: INK, 'stroke-width': 5 });
  return element(
    'defs',
    {},
    element('pattern', { id: `${drawing}-hatched`, ...tile, patternTransform: 'rotate(45)' }, paper, stripe),
    element(
      'pattern',
      { id: `${drawing}-dotted`, ...tile },
      paper,
      element('circle', { cx: 3, cy: 3, r: 1.4, fill: INK }),
    ),
  );
}

export function filled(drawing: string, fill: Fill): Record<string, string | number> {
  const paint = {
    solid: INK,
    hollow: '#fff',
    hatched: `url(#${drawing}-hatched)`,
    dotted: `url(#${drawing}-dotted)`,
  };
  return { fill: paint[fill], stroke: INK, 'stroke-width': 1 };
}
