// One sale: its figures, segments and actions, and the tabs beside them.
import * as actions from './actions.js';
import { call, saleUrl } from './api.js';
import { LeftBar, SegmentBars } from './bars.js';
import { opener } from './dialogs.js';
import { el, facts, say, setAttribute, setText } from './dom.js';
import { driftOf, driftText, number, plural, rate, soldOf, stateOf, time, unitsOf } from './format.js';
import { queryOf, saleHash } from './hash.js';
import { ledgerTab } from './ledger.js';
import { ordersTab } from './orders.js';
import { queueTab } from './queue.js';
import { SoldRate } from './sold-rate.js';
import { verifyTab } from './verify.js';

const TABS = { overview: 'Overview', queue: 'Queue', orders: 'Orders', ledger: 'Ledger', verify: 'Verify' };
const RECOVERY_POLL_MS = 1_000;

export class SaleView {
  element;
  stream;
  #saleId;
  #sale;
  #title = el('h1', { id: 'title' });
  #state = el('span');
  #window = el('p', { class: 'note' });
  #problem = el('p', { class: 'refused' });
  /** Hidden until the sale is known: before, there is nothing to act on. */
  #buttons = el('div', { class: 'buttons', role: 'group', 'aria-label': 'Actions', hidden: true });
  #pauseOrResume = el('button', { type: 'button' }, 'Pause');
  #topUp = el('button', { type: 'button' }, 'Top up');
  #resize = el('button', { type: 'button' }, 'Resize');
  #progress = el('p', { class: 'note' });
  #overview;

  constructor({ saleId, tab, query }) {
    this.#saleId = saleId;
    this.stream = `v1/console/events${queryOf({ limit: 0, saleId })}`;
    setText(this.#title, saleId);
    this.#fillButtons();
    const tabs = Object.entries(TABS).map(([name, label]) =>
      el('a', { href: saleHash(saleId, name), 'aria-current': name === tab ? 'page' : undefined }, label),
    );
    this.element = el(
      'section',
      { 'aria-labelledby': 'title' },
      el('p', { class: 'crumb' }, el('a', { href: '#/sales' }, 'Sales')),
      el('div', { class: 'head with-state' }, this.#title, this.#state),
      this.#window,
      this.#problem,
      this.#buttons,
      this.#progress,
      el('nav', { class: 'tabs links', 'aria-label': 'Parts of the sale' }, ...tabs),
      this.#tab(tab, query),
    );
    void this.#followRecovery();
  }

  set({ detail }) {
    const why = detail?.problem;
    setText(this.#problem, why === undefined ? '' : `The sale can’t be shown: ${why}.`);
    if (detail?.value === undefined) return;
    const { sale, segments } = detail.value;
    this.#sale = sale;
    const { text, kind } = stateOf(sale);
    setText(this.#title, sale.title || sale.id);
    setText(this.#state, text);
    setAttribute(this.#state, 'class', `state ${kind}`);
    setText(this.#window, windowText(sale));
    this.#buttons.hidden = sale.archivedAt !== undefined;
    setText(this.#pauseOrResume, sale.state === 'paused' ? 'Resume' : 'Pause');
    for (const button of [this.#pauseOrResume, this.#topUp, this.#resize])
      button.hidden = sale.state === 'closed';
    this.#overview?.set(sale, segments, detail.ageMs);
  }

  #tab(tab, query) {
    if (tab === 'queue') return queueTab(this.#saleId, query);
    if (tab === 'orders') return ordersTab(this.#saleId, query);
    if (tab === 'ledger') return ledgerTab(this.#saleId);
    if (tab === 'verify') return verifyTab(this.#saleId, () => this.#sale);
    this.#overview = new Overview();
    return this.#overview.element;
  }

  #fillButtons() {
    const withdraw = el('button', { type: 'button' }, 'Withdraw');
    const rebalance = el('button', { type: 'button' }, 'Rebalance');
    const recover = el('button', { type: 'button', class: 'grave-quiet' }, 'Recover');
    const opens = opener(
      () => call('GET', saleUrl(this.#saleId)),
      // Without the node's numbers a sale can still be paused.
      () => ({ ...this.#sale, remaining: undefined }),
      (error) => {
        say(error.message);
        setText(this.#problem, error.message);
      },
    );
    opens(this.#pauseOrResume, (sale, said) =>
      said === 'Resume' ? actions.resume(sale) : actions.pause(sale),
    );
    opens(this.#topUp, actions.topUp);
    opens(withdraw, actions.withdraw);
    opens(this.#resize, actions.resize);
    opens(rebalance, actions.rebalance);
    opens(recover, (sale) => actions.recover(sale, () => void this.#followRecovery()));
    this.#buttons.append(this.#pauseOrResume, this.#topUp, withdraw, this.#resize, rebalance, recover);
  }

  /** Shows the progress of a rebuild that an operator has begun at this node, until it ends. */
  async #followRecovery() {
    let wasRunning = false;
    do {
      let recovery;
      try {
        recovery = await call('GET', `${saleUrl(this.#saleId)}/recover`);
      } catch {
        return;
      }
      const isRunning = recovery.state === 'running';
      setText(this.#progress, recoveryText(recovery));
      if (wasRunning && !isRunning) say(recoveryText(recovery));
      wasRunning = isRunning;
      if (isRunning) await new Promise((resolve) => setTimeout(resolve, RECOVERY_POLL_MS));
    } while (wasRunning && (this.element === undefined || this.element.isConnected));
  }
}

const STEPS = {
  wait: 'another process rebuilds it',
  salvage: 'saving the logs',
  load: 'loading the orders',
  publish: 'opening the segments',
  names: 'it sells again; nodes may name lost orders',
};

function recoveryText(recovery) {
  if (recovery.state === 'running')
    return `Being rebuilt: ${STEPS[recovery.step]} (${number(recovery.done)} of ${number(recovery.total)}).`;
  if (recovery.state === 'failed') return `The rebuild failed: ${recovery.problem}. Sync tries again.`;
  if (recovery.state !== 'done') return '';
  const lost = recovery.losses.reduce((sum, { orders }) => sum + orders, 0);
  return `Rebuilt as generation ${number(recovery.generation)} in ${number(recovery.tookMs)} ms; ${lost === 0 ? 'no order is lost' : `at least ${plural(lost, 'order')} lost`}.`;
}

function windowText({ startsAt, endsAt, perBuyerLimit }) {
  const end = endsAt ? `until ${time(endsAt)}` : 'without an end';
  return `From ${time(startsAt)} ${end}; ${plural(perBuyerLimit, 'unit')} for each buyer.`;
}

class Overview {
  #left = stat('Left');
  #offered = stat('In offers');
  #waiting = stat('Waiting, at most');
  #sold = stat('Sold');
  #rate = stat('Sold/s, all nodes');
  #orders = stat('Orders in Postgres');
  #drift = stat('Between the stores');
  #bar = new LeftBar();
  #bars = new SegmentBars();
  #driftText = el('p', { class: 'note' });
  #facts = el('div');
  #soldRate = new SoldRate();
  element = el(
    'div',
    {},
    el(
      'div',
      { class: 'stats' },
      ...[this.#left, this.#offered, this.#waiting, this.#sold, this.#rate, this.#orders, this.#drift].map(
        ({ element }) => element,
      ),
    ),
    this.#bar.element,
    this.#driftText,
    el('h2', {}, 'Segments'),
    this.#bars.element,
    this.#facts,
  );
  #shownFacts = '';

  constructor() {
    this.#bar.element.classList.add('long');
  }

  set(sale, segments, ageMs) {
    const drift = driftOf(sale);
    this.#left.set(number(sale.remaining), `of ${number(unitsOf(sale))}`);
    const { behindHead, offeredUnits } = sale;
    this.#offered.element.hidden = behindHead === undefined;
    this.#waiting.element.hidden = behindHead === undefined;
    this.#offered.set(number(offeredUnits), 'units');
    this.#waiting.set(number(behindHead), 'places');
    this.#sold.set(number(soldOf(sale)), 'units');
    this.#rate.set(rate(this.#soldRate.add(soldOf(sale), ageMs)), 'units');
    this.#orders.set(number(sale.committedOrders), plural(sale.committedUnits, 'unit'));
    this.#drift.set(number(drift), drift === 0 ? 'they agree' : 'units on their way');
    this.#bar.set(sale.remaining, unitsOf(sale));
    setText(
      this.#driftText,
      sale.archivedAt
        ? 'The sale is archived: it is in Postgres alone.'
        : `${driftText(drift)} Verify explains each difference.`,
    );
    if (segments.length > 0) this.#bars.set(segments);
    this.#setFacts(sale);
  }

  #setFacts(sale) {
    const pairs = [
      ['Id', sale.id],
      ['Stock at the start', number(sale.stock)],
      ['Added since, less withdrawn', number(sale.movedUnits)],
      ['Segments', number(sale.segments)],
      ['Generation', number(sale.generation)],
      ['Archived', time(sale.archivedAt)],
      ['To be erased', sale.waitingErasures ? plural(sale.waitingErasures, 'buyer') : undefined],
    ];
    if (JSON.stringify(pairs) === this.#shownFacts) return;
    this.#shownFacts = JSON.stringify(pairs);
    this.#facts.replaceChildren(facts(pairs));
  }
}

function stat(label) {
  const value = el('span', { class: 'value' }, '–');
  const note = el('span', { class: 'note' });
  return {
    element: el('div', { class: 'stat' }, el('span', { class: 'label' }, label), value, note),
    set(text, more) {
      setText(value, text);
      setText(note, more);
    },
  };
}
