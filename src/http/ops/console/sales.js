// The list of sales: a page of them, each row kept up to date.
import { LeftBar } from './bars.js';
import { labelled } from './dialogs.js';
import { el, setAttribute, setChildren, setText } from './dom.js';
import { driftOf, number, plural, rate, soldOf, stateOf, unitsOf } from './format.js';
import { queryOf, saleHash, viewHash } from './hash.js';
import { SoldRate } from './sold-rate.js';

const PAGE = 50;

export class SalesView {
  element;
  stream;
  #rows = new Map();
  #body = el('tbody');
  #note = el('p', { class: 'note' });
  #problem = el('p', { class: 'refused' });
  #next = el('a', { class: 'button', hidden: true }, 'Older sales');
  #query;

  constructor({ query }) {
    this.#query = { state: query.state, archived: query.archived, after: query.after };
    this.stream = `v1/console/events${queryOf({ limit: PAGE, ...this.#query })}`;
    const first = el(
      'a',
      { class: 'button', href: viewHash('sales', { ...this.#query, after: '' }), hidden: !query.after },
      'Newest sales',
    );
    const headings = [
      ['Sale'],
      ['State'],
      ['Left'],
      ['Sold/s', 'n wide'],
      ['Orders', 'n wide'],
      ['Not in Postgres', 'n wide'],
    ];
    this.element = el(
      'section',
      { 'aria-labelledby': 'title' },
      el('div', { class: 'head' }, el('h1', { id: 'title' }, 'Sales'), this.#filter(query), this.#open()),
      this.#problem,
      el(
        'div',
        { class: 'sheet' },
        el(
          'table',
          { class: 'sales' },
          el('caption', {}, 'Sales, the newest first'),
          el(
            'thead',
            {},
            el('tr', {}, ...headings.map(([text, css]) => el('th', { scope: 'col', class: css }, text))),
          ),
          this.#body,
        ),
      ),
      this.#note,
      el('p', { class: 'pages' }, first, this.#next),
    );
  }

  set({ list }) {
    setText(
      this.#problem,
      list?.problem === undefined ? '' : `The sales can’t be read now: ${list.problem}.`,
    );
    if (list?.value === undefined) return;
    const { sales, next } = list.value;
    for (const sale of sales) {
      if (!this.#rows.has(sale.id)) this.#rows.set(sale.id, new Row(sale.id));
      this.#rows.get(sale.id).set(sale, list.ageMs);
    }
    const shown = new Set(sales.map(({ id }) => id));
    for (const id of [...this.#rows.keys()]) if (!shown.has(id)) this.#rows.delete(id);
    setChildren(
      this.#body,
      sales.map(({ id }) => this.#rows.get(id).element),
    );
    setText(
      this.#note,
      sales.length === 0 ? this.#nothing() : `${plural(sales.length, 'sale')} on this page.`,
    );
    this.#next.hidden = next === undefined;
    setAttribute(this.#next, 'href', viewHash('sales', { ...this.#query, after: next }));
  }

  #nothing() {
    return this.#query.state || this.#query.archived || this.#query.after
      ? 'No sale matches.'
      : 'There is no sale yet. Create one with: stockade sale create my-sale --stock 100';
  }

  #filter(query) {
    const select = (name, label, options) => {
      const input = el(
        'select',
        { id: `filter-${name}`, name },
        ...options.map(([value, text]) => el('option', { value }, text)),
      );
      input.value = query[name] ?? '';
      return labelled(input, label);
    };
    const form = el(
      'form',
      { class: 'filter', 'aria-label': 'Filter' },
      select('state', 'State', [
        ['', 'all'],
        ['open', 'open'],
        ['paused', 'paused'],
        ['closed', 'closed'],
      ]),
      select('archived', 'Archived', [
        ['', 'left out'],
        ['include', 'also'],
        ['only', 'only'],
      ]),
    );
    form.addEventListener('change', () => {
      location.hash = viewHash('sales', Object.fromEntries(new FormData(form)));
    });
    return form;
  }

  #open() {
    const input = el('input', { id: 'open-sale', name: 'sale', autocomplete: 'off', spellcheck: 'false' });
    const form = el(
      'form',
      { class: 'filter', 'aria-label': 'Open a sale by its id' },
      labelled(input, 'Sale id'),
      el('button', { type: 'submit' }, 'Open'),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (input.value.trim() !== '') location.hash = saleHash(input.value.trim());
    });
    return form;
  }
}

class Row {
  #title = el('a');
  #id = el('span', { class: 'id' });
  #state = el('span');
  #waiting = el('span', { class: 'id' });
  #bar = new LeftBar();
  #left = el('span', { class: 'number' });
  #rate = el('td', { class: 'n wide' });
  #orders = el('td', { class: 'n wide' });
  #drift = el('td', { class: 'n wide' });
  #sold = new SoldRate();
  element;

  constructor(id) {
    this.#title.href = saleHash(id);
    this.element = el(
      'tr',
      {},
      el('td', {}, this.#title, this.#id),
      el('td', {}, this.#state, this.#waiting),
      el('td', {}, this.#bar.element, this.#left),
      this.#rate,
      this.#orders,
      this.#drift,
    );
  }

  set(sale, ageMs) {
    const { text, kind } = stateOf(sale);
    setText(this.#title, sale.title || sale.id);
    setText(this.#id, sale.title === '' ? '' : sale.id);
    setText(this.#state, text);
    setAttribute(this.#state, 'class', `state ${kind}`);
    this.#bar.set(sale.remaining, unitsOf(sale));
    setText(this.#waiting, sale.behindHead ? `up to ${number(sale.behindHead)} wait` : '');
    const offered = sale.offeredUnits ? `, ${number(sale.offeredUnits)} in offers` : '';
    setText(this.#left, `${number(sale.remaining)} of ${number(unitsOf(sale))}${offered}`);
    setText(this.#rate, rate(this.#sold.add(soldOf(sale), ageMs)));
    setText(this.#orders, number(sale.committedOrders));
    setText(this.#drift, number(driftOf(sale)));
  }
}
