// The figures of this node, above every view.
import { el, setAttribute, setText } from './dom.js';
import { number, plural, rate, seconds } from './format.js';
import { Trend } from './trend.js';

/** A lag above this is worth a look; docs/operations/alarms.md has the alarm. */
const LAG_WARNS_S = 5;

class Figure {
  #value = el('span', { class: 'value' }, '–');
  #note = el('span', { class: 'note' });
  #trend = new Trend();
  element;

  constructor(label) {
    this.element = el(
      'div',
      { class: 'figure' },
      el('span', { class: 'label' }, label),
      this.#value,
      this.#trend.element,
      this.#note,
    );
  }

  set(text, note, trend, isBad = false) {
    setText(this.#value, text);
    setText(this.#note, note);
    this.#trend.add(trend);
    setAttribute(this.element, 'class', isBad ? 'figure bad' : 'figure');
  }
}

export class Figures {
  #purchases = new Figure('Requests/s');
  #orders = new Figure('Orders/s');
  #refusals = new Figure('Refusals/s');
  #failures = new Figure('Not served/s');
  #queue = new Figure('Queue, polls/s');
  #lag = new Figure('Sync lag, orders');
  #problem = el('p', { class: 'refused' });
  #totals = el('p', { class: 'totals' });

  constructor(section) {
    const row = [this.#purchases, this.#orders, this.#refusals, this.#failures, this.#queue, this.#lag];
    section.replaceChildren(
      el('div', { class: 'row' }, ...row.map(({ element }) => element)),
      this.#totals,
      this.#problem,
    );
  }

  set({ node, totals, others }) {
    const { perSecond, queue, sync, connections, waiting, notReady } = node.value ?? {};
    const byCode = perSecond?.byCode ?? {};
    this.#purchases.set(
      rate(perSecond?.purchases),
      plural(connections ?? 0, 'connection'),
      perSecond?.purchases,
    );
    this.#orders.set(rate(perSecond?.orders), `${number(waiting ?? 0)} wait for Postgres`, perSecond?.orders);
    this.#refusals.set(
      rate(perSecond?.refusals),
      reasons(byCode, (code) => !SERVED.has(code) && !FAILURES.has(code)),
      perSecond?.refusals,
    );
    this.#failures.set(
      rate(perSecond?.failures),
      reasons(byCode, (code) => FAILURES.has(code)),
      perSecond?.failures,
      perSecond?.failures > 0,
    );
    this.#queue.element.hidden = queue === undefined;
    if (queue !== undefined) this.#setQueue(queue);
    this.#lag.set(
      number(sync?.lagOrders),
      sync === undefined ? 'This process runs no sync' : `${seconds(sync.lagSeconds)} behind`,
      sync?.lagOrders,
      sync?.lagSeconds > LAG_WARNS_S,
    );
    setText(this.#totals, totalsText(totals, others));
    const problems = [
      notReady === undefined ? '' : `This node can’t sell now: ${notReady}.`,
      node.problem === undefined ? '' : `This node’s figures can’t be read: ${node.problem}.`,
      totals.problem === undefined ? '' : `The sales can’t be counted: ${totals.problem}.`,
    ];
    setText(this.#problem, problems.filter(Boolean).join(' '));
  }

  #setQueue({ perSecond, streams }) {
    const failed = perSecond?.failures > 0;
    const more = failed ? `${rate(perSecond.failures)} not served/s` : plural(streams, 'stream');
    this.#queue.set(
      rate(perSecond?.polls),
      `${rate(perSecond?.joins)} joins/s, ${more}`,
      perSecond?.polls,
      failed,
    );
  }
}

const SERVED = new Set(['committed', 'accepted']);
const FAILURES = new Set(['busy', 'unavailable', 'unknown', 'internal']);

/** The most frequent codes. */
function reasons(byCode, isOne) {
  const found = Object.entries(byCode).filter(([code]) => isOne(code));
  found.sort(([, a], [, b]) => b - a);
  return found
    .slice(0, 2)
    .map(([code, perSecond]) => `${code.replaceAll('_', ' ')} ${rate(perSecond)}`)
    .join(', ');
}

function totalsText({ value = [] }, others) {
  const states = ['open', 'paused', 'closed'].flatMap((state) => {
    const total = value.find((each) => each.state === state);
    return total ? `${number(total.sales)} ${state} (${plural(total.unsold, 'unit')} unsold)` : [];
  });
  const differing = others.filter(({ differs }) => differs.length > 0).length;
  const nodes =
    others.length === 0
      ? 'Requests, orders and refusals are those of this node, which is the only process.'
      : `Requests, orders and refusals are those of this node; ${plural(others.length, 'other process', 'other processes')} of the shop, ${differing === 0 ? 'all with the same settings' : `${number(differing)} with other settings`}.`;
  return `Sales: ${states.join(', ') || 'none'}. ${nodes}`;
}
