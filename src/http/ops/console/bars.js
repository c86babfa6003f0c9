// Stock as bars, each with a text that says the same.
import { el, setAttribute, setChildren, setText } from './dom.js';
import { number, plural } from './format.js';

/** A bar that shows which part of the whole is left. */
export class LeftBar {
  #fill = el('span', { class: 'fill' });
  element = el('span', { class: 'bar', 'aria-hidden': 'true' }, this.#fill);

  set(left, whole) {
    this.#fill.style.setProperty('--part', whole > 0 ? Math.max(0, Math.min(1, (left ?? 0) / whole)) : 0);
  }
}

/** More bars than this would be too thin to see: each then stands for several segments. */
const MAX_BARS = 128;

/** A bar for each segment: its height is what the segment has had, the filled part what is left there. */
export class SegmentBars {
  #bars = [];
  #row = el('div', { class: 'bars', role: 'img' });
  #note = el('p', { class: 'note' });
  #body = el('tbody');
  #table = el(
    'details',
    {},
    el('summary', {}, 'The same as a table'),
    el(
      'div',
      { class: 'scroll', role: 'region', 'aria-label': 'Segments', tabindex: 0 },
      el(
        'table',
        {},
        el('caption', {}, 'Segments'),
        el(
          'thead',
          {},
          el(
            'tr',
            {},
            ...['Segment', 'Left', 'Sold', 'In transit'].map((text) =>
              el('th', { scope: 'col', class: 'n' }, text),
            ),
          ),
        ),
        this.#body,
      ),
    ),
  );
  element = el('div', { class: 'segments' }, this.#row, this.#note, this.#table);

  set(segments) {
    const perBar = Math.ceil(segments.length / MAX_BARS);
    const groups = Array.from({ length: Math.ceil(segments.length / perBar) }, (_, i) =>
      groupOf(segments.slice(i * perBar, (i + 1) * perBar)),
    );
    const most = Math.max(1, ...groups.map(({ left, taken }) => left + taken));
    while (this.#bars.length < groups.length) this.#bars.push(el('span', {}, el('span', { class: 'fill' })));
    setChildren(this.#row, this.#bars.slice(0, groups.length));
    for (const [i, { left, taken, isMissing }] of groups.entries()) {
      const bar = this.#bars[i];
      setAttribute(bar, 'class', isMissing ? 'missing' : '');
      bar.style.setProperty('--whole', (left + taken) / most);
      bar.firstChild.style.setProperty('--part', left + taken > 0 ? left / (left + taken) : 0);
    }
    setAttribute(this.#row, 'aria-label', textOf(segments));
    const bar =
      perBar > 1 ? `A bar, of up to ${perBar} segments, is what they have` : 'A bar is what its segment has';
    setText(this.#note, `${textOf(segments)} ${bar} had, its filled part what is left.`);
    if (this.#table.open) this.#fillTable(segments);
    else this.#body.replaceChildren();
    this.#table.ontoggle = () => this.#fillTable(segments);
  }

  #fillTable(segments) {
    while (this.#body.rows.length > segments.length) this.#body.deleteRow(-1);
    while (this.#body.rows.length < segments.length)
      this.#body.append(el('tr', {}, ...Array.from({ length: 4 }, () => el('td', { class: 'n' }))));
    for (const [i, { segment, left, taken, inTransit }] of segments.entries()) {
      const { cells } = this.#body.rows[i];
      for (const [c, value] of [segment, left, taken, inTransit].entries()) setText(cells[c], number(value));
    }
  }
}

function groupOf(segments) {
  const sum = (name) => segments.reduce((total, segment) => total + (segment[name] ?? 0), 0);
  return {
    left: sum('left'),
    taken: sum('taken'),
    isMissing: segments.some(({ left }) => left === undefined),
  };
}

function textOf(segments) {
  const missing = segments.filter(({ left }) => left === undefined).length;
  const present = segments.flatMap(({ left }) => left ?? []);
  const empty = present.filter((left) => left === 0).length;
  const least = present.length === 0 ? 0 : Math.min(...present);
  const most = present.length === 0 ? 0 : Math.max(...present);
  const count = plural(segments.length, 'segment');
  return [
    most === 0 && missing === 0
      ? `${count}, ${segments.length === 1 ? 'empty' : 'all of them empty'}.`
      : `${count}: ${number(least)} to ${plural(most, 'unit')} left in each, ${number(empty)} empty.`,
    missing > 0 ? `${plural(missing, 'segment')} can’t be read: the sale is being rebuilt.` : '',
  ]
    .filter(Boolean)
    .join(' ');
}
