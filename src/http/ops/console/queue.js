// The queue of a sale: who waits, whether offers are made, and its places.
import { call, saleUrl } from './api.js';
import { opener } from './dialogs.js';
import { el, facts, say, setText } from './dom.js';
import { number, plural, time } from './format.js';
import { placesPanel } from './places.js';
import * as actions from './queue-actions.js';

const LOOK_MS = 2_000;

/** What the button says while the offers are stopped. What it said when it was pressed decides what is asked. */
const GO = 'Resume the offers';

const PHASES = {
  off: 'The queue is off: buyers buy without a place.',
  closed: 'The sale is closed: no offers are made.',
  before: 'The window of the sale has not opened: no offers are made yet.',
  ended: 'The window of the sale has ended: no offers are made.',
  'no-head': 'No node makes offers. A node that runs does so within 10 s.',
  paused: 'The sale is paused: no offers are made.',
  stopped: 'The offers are stopped.',
  offering: 'Free units go to the next places.',
};

/** @param {Record<string, string>} query which places are listed */
export function queueTab(saleId, query) {
  const panel = el('div', {}, el('p', { class: 'note' }, 'Reading the queue …'));
  const view = new QueueView(saleId);
  const problem = el('p', { class: 'refused' });
  const look = async () => {
    try {
      const queue = await readQueue(saleId);
      view.set(queue);
      setText(problem, '');
      if (!view.element.isConnected) panel.replaceChildren(problem, view.element, placesPanel(queue, query));
    } catch (error) {
      // What is shown stays, with what an operator has begun to type.
      if (view.element.isConnected) setText(problem, error.message);
      // The only state in which a queue can't be read is that the sale has none.
      else
        panel.replaceChildren(
          el('p', { class: error.code === 'wrong_state' ? 'note' : 'refused' }, error.message),
        );
    }
  };
  const timer = setInterval(() => {
    if (!panel.isConnected) clearInterval(timer);
    else if (!document.hidden) void look();
  }, LOOK_MS);
  void look();
  return panel;
}

const readQueue = (saleId) => call('GET', `${saleUrl(saleId)}/queue`);

class QueueView {
  #queue;
  #phase = el('p', { class: 'note' });
  #stopOrGo = el('button', { type: 'button' });
  #handOut = el('button', { type: 'button' }, 'Hand out offers');
  #buttons = el('div', { class: 'buttons', role: 'group', 'aria-label': 'Offers' });
  #facts = el('div');
  #shown = '';
  element = el('div', {}, this.#phase, this.#buttons, this.#facts);

  constructor(saleId) {
    const pace = el('button', { type: 'button' }, 'Set the pace');
    const settings = el('button', { type: 'button' }, 'Change the settings');
    const opens = opener(
      () => readQueue(saleId),
      () => ({ ...this.#queue, counts: undefined, freeUnits: undefined }),
      (error) => say(error.message),
    );
    const changed = (queue) => this.set(queue);
    opens(this.#stopOrGo, (queue, said) =>
      said === GO ? actions.resumeOffers(queue, changed) : actions.pauseOffers(queue, changed),
    );
    opens(this.#handOut, (queue) => actions.handOutOffers(queue, changed));
    opens(pace, (queue) => actions.paceOffers(queue, changed));
    opens(settings, (queue) => actions.changeSettings(queue, changed));
    this.#buttons.append(this.#stopOrGo, this.#handOut, pace, settings);
  }

  set(queue) {
    this.#queue = queue;
    const { allowed, phase, stopped, behindHead, maxWaiting } = queue;
    const stop = stopped && (phase === 'before' || phase === 'paused') ? ' They are stopped, too.' : '';
    const handed = stopped && allowed > 0 ? ` ${plural(allowed, 'more offer')} may still be made.` : '';
    const full = behindHead >= maxWaiting ? ' The queue is full: new buyers are refused.' : '';
    setText(this.#phase, `${waitsText(queue) ?? PHASES[phase]}${stop}${handed}${full}`);
    setText(this.#stopOrGo, stopped ? GO : 'Stop the offers');
    this.#handOut.hidden = !stopped;
    this.#buttons.hidden = phase === 'off' || phase === 'closed';
    const parts = [figuresOf(queue), settingsOf(queue)];
    if (JSON.stringify(parts) === this.#shown) return;
    this.#shown = JSON.stringify(parts);
    this.#facts.replaceChildren(
      facts(parts[0]),
      ...(parts[1].length > 0 ? [el('h2', {}, 'Settings'), facts(parts[1])] : []),
    );
  }
}

const known = (n) => (n === undefined ? '' : number(n));

const waitsText = ({ waitsForUnits, freeUnits }) =>
  waitsForUnits &&
  `The next place, ${number(waitsForUnits.number)}, wants ${plural(waitsForUnits.quantity, 'unit')}. ` +
    `Free: ${plural(freeUnits, 'unit')}, so it waits for more (fit wait).`;

function figuresOf({ counts, draw, ...queue }) {
  const counted = (state) => (counts === undefined ? '' : number(counts[state]));
  return [
    ['Waiting', counts === undefined ? `at most ${number(queue.behindHead)}` : counted('waiting')],
    ['Offered', counted('offered')],
    ['Bought', counted('bought')],
    ['Lapsed', counted('lapsed')],
    ['Left the queue', counted('left')],
    ['Places given', number(queue.places)],
    ['Free units', known(queue.freeUnits)],
    ['Offers so far', number(queue.offersMade)],
    ['Offers in the last minute', number(queue.offersLastMinute)],
    ['Nobody waits up to rank', queue.head === 0 ? '' : number(queue.head)],
    ['Hopeless from rank', known(queue.hopelessFrom)],
    ['Drawn', time(draw.drawnAt)],
  ];
}

const ORDERS = { fifo: 'first come, first served', draw: 'drawn when the window opens' };

function settingsOf({ order, offerSeconds, presenceSeconds, maxWaiting, fit, perMinute, draw }) {
  if (order === 'off') return [];
  return [
    ['Order', ORDERS[order]],
    [
      'Offers in a minute at most',
      perMinute === undefined ? 'as many as there are units' : number(perMinute),
    ],
    ['An offer stands for', `${number(offerSeconds)} s`],
    ['Absent after', presenceSeconds === 0 ? 'never' : `${number(presenceSeconds)} s`],
    ['Places behind the head at most', number(maxWaiting)],
    ['If the next place wants too many units', actions.FITS[fit]],
    ['Commitment of the draw', order === 'draw' ? draw.commitment : ''],
  ];
}
