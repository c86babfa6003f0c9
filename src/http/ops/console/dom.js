// Makes and changes elements. Text from the server becomes text nodes and nothing else.

/**
 * @param {string} tag
 * @param {Record<string, unknown>} props attributes; `class`, `on` for listeners by event. `false` and `undefined` are left out
 * @param {...(Node | string | undefined)} children
 */
export function el(tag, { on = {}, ...props } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === true) made.setAttribute(name, '');
    else if (value !== undefined && value !== false) made.setAttribute(name, String(value));
  }
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg(tag, props = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** Changes the text only if it differs, so that selections and screen readers are left in peace. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Replaces the children unless they are these already. */
export function setChildren(parent, children) {
  const same =
    parent.childNodes.length === children.length &&
    children.every((child, i) => parent.childNodes[i] === child);
  if (!same) parent.replaceChildren(...children);
}

/** Rows in view before a reader asks for more. */
const ROWS_AT_ONCE = 100;

/**
 * A table with headings. Of many rows it shows the first, and a button for more.
 * @param {string} caption
 * @param {readonly (string | { text: string, class?: string })[]} headings
 * @param {readonly unknown[]} items
 * @param {(item: any) => readonly (Node | string)[]} cellsOf
 */
export function table(caption, headings, items, cellsOf) {
  const classes = headings.map((heading) => heading.class);
  const body = el('tbody');
  const row = (item) =>
    el('tr', {}, ...cellsOf(item).map((cell, i) => el('td', { class: classes[i] }, cell)));
  const more = el('button', { type: 'button', class: 'quiet more' });
  let shown = 0;
  const showMore = () => {
    body.append(...items.slice(shown, shown + ROWS_AT_ONCE).map(row));
    shown = Math.min(items.length, shown + ROWS_AT_ONCE);
    more.hidden = shown === items.length;
    more.textContent = `Show more (${items.length - shown} left)`;
  };
  more.addEventListener('click', showMore);
  showMore();
  const head = headings.map((heading) =>
    el('th', { scope: 'col', class: heading.class }, heading.text ?? heading),
  );
  return el(
    'div',
    { class: 'sheet' },
    el(
      'div',
      { class: 'scroll', role: 'region', 'aria-label': caption, tabindex: 0 },
      el('table', {}, el('caption', {}, caption), el('thead', {}, el('tr', {}, ...head)), body),
    ),
    more,
  );
}

/** Pairs of a name and a value. */
export function facts(pairs) {
  return el(
    'dl',
    { class: 'facts' },
    ...pairs
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
  );
}

/** Says something once to screen readers, and shows it for a while. */
export function say(text) {
  const said = document.getElementById('said');
  said.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.replaceChildren(), 8_000);
}
