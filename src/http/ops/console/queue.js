// The queue of a sale: who waits, whether offers are made, and what operators do with the offers.
import { call, saleUrl } from './api.js';
import { ask, opener, REASON } from './dialogs.js';
import { el, facts, say, setText } from './dom.js';
import { number, plural, time } from './format.js';

const LOOK_MS = 2_000;
const NUMBER = { type: 'number', step: 1, inputmode: 'numeric' };

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

export function queueTab(saleId) {
  const panel = el('div', {}, el('p', { class: 'note' }, 'Reading the queue …'));
  const view = new QueueView(saleId);
  const look = async () => {
    try {
      view.set(await readQueue(saleId));
      if (!view.element.isConnected) panel.replaceChildren(view.element);
    } catch (error) {
      panel.replaceChildren(
        // The only state in which a queue can't be read is that the sale has none.
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
  #saleId;
  #queue;
  #phase = el('p', { class: 'note' });
  #stopOrGo = el('button', { type: 'button' });
  #handOut = el('button', { type: 'button' }, 'Hand out offers');
  #buttons = el('div', { class: 'buttons', role: 'group', 'aria-label': 'Offers' });
  #facts = el('div');
  #shown = '';
  element = el('div', {}, this.#phase, this.#buttons, this.#facts);

  constructor(saleId) {
    this.#saleId = saleId;
    const pace = el('button', { type: 'button' }, 'Set the pace');
    const opens = opener(
      () => readQueue(saleId),
      () => ({ ...this.#queue, counts: undefined, freeUnits: undefined }),
      (error) => say(error.message),
    );
    opens(this.#stopOrGo, (queue, said) => (said === GO ? this.#resume(queue) : this.#pause(queue)));
    opens(this.#handOut, (queue) => this.#ask(handingOut(queue)));
    opens(pace, (queue) => this.#ask(pacing(queue)));
    this.#buttons.append(this.#stopOrGo, this.#handOut, pace);
  }

  set(queue) {
    this.#queue = queue;
    const { allowed, phase, stopped } = queue;
    const handed = stopped && allowed > 0 ? ` ${plural(allowed, 'more offer')} may still be made.` : '';
    setText(this.#phase, `${PHASES[phase]}${handed}`);
    setText(this.#stopOrGo, stopped ? GO : 'Stop the offers');
    this.#handOut.hidden = !stopped;
    this.#buttons.hidden = phase === 'off' || phase === 'closed';
    const pairs = pairsOf(queue);
    if (JSON.stringify(pairs) === this.#shown) return;
    this.#shown = JSON.stringify(pairs);
    this.#facts.replaceChildren(facts(pairs));
  }

  #pause(queue) {
    this.#ask({
      title: `Stop the offers of ${queue.saleId}`,
      go: 'Stop the offers',
      lines: () => [
        waitingText(queue),
        'They keep their places, and nobody new gets an offer. A round that is under way goes on to its end.',
        'Offers that buyers have stay, and can be accepted.',
      ],
      body: () => ({ action: 'pause' }),
      done: 'The offers are stopped.',
    });
  }

  #resume(queue) {
    this.#ask({
      title: `Resume the offers of ${queue.saleId}`,
      go: GO,
      lines: () => [waitingText(queue), freeText(queue), paceText(queue)],
      body: () => ({ action: 'resume' }),
      done: 'The offers go on.',
    });
  }

  /** Asks, sends the change, and shows the queue as it is then. */
  #ask({ body, done, fields = [], ...dialog }) {
    ask({
      ...dialog,
      fields: [...fields, REASON],
      run: async ({ reason, ...values }) => {
        const change = { ...body(values), ...(reason && { reason }) };
        this.set(await call('PATCH', `${saleUrl(this.#saleId)}/queue`, change));
        return done;
      },
    });
  }
}

function handingOut(queue) {
  return {
    title: `Hand out offers of ${queue.saleId}`,
    go: 'Hand them out',
    fields: [{ ...NUMBER, name: 'offers', label: 'Offers', min: 0, required: true }],
    lines: ({ offers }) => [
      waitingText(queue),
      freeText(queue),
      `The next ${number(Number(offers))} places get an offer as soon as units are free. Then the offers stop again.`,
      `${plural(queue.allowed, 'offer')} left of an earlier number; the new one replaces it.`,
    ],
    body: ({ offers }) => ({ action: 'hand-out', offers: Number(offers) }),
    done: 'The offers are handed out.',
  };
}

function pacing(queue) {
  return {
    title: `Set the pace of ${queue.saleId}`,
    go: 'Set the pace',
    fields: [
      {
        ...NUMBER,
        name: 'perMinute',
        label: 'Offers in a minute at most',
        min: 1,
        value: String(queue.perMinute ?? ''),
        hint: 'Empty: as many as there are units.',
      },
    ],
    lines: ({ perMinute }) => [
      paceText(queue),
      perMinute === ''
        ? 'After: as many as there are units.'
        : `After: at most ${number(Number(perMinute))} a minute.`,
      `${plural(queue.offersLastMinute, 'offer')} in the last minute.`,
    ],
    body: ({ perMinute }) => ({ action: 'pace', perMinute: perMinute === '' ? null : Number(perMinute) }),
    done: 'The pace is set.',
  };
}

const waitingText = ({ counts, behindHead }) =>
  counts === undefined
    ? `At most ${plural(behindHead, 'place')} wait.`
    : `Waiting: ${plural(counts.waiting, 'place')}.`;

const freeText = ({ freeUnits }) =>
  freeUnits === undefined
    ? 'How many units are free is not known yet.'
    : `Free: ${plural(freeUnits, 'unit')}.`;

const paceText = ({ perMinute }) =>
  perMinute === undefined
    ? 'Now: as many as there are units.'
    : `Now: at most ${number(perMinute)} a minute.`;

function pairsOf({ counts, draw, ...queue }) {
  const counted = (state) => (counts === undefined ? '' : number(counts[state]));
  return [
    ['Waiting', counts === undefined ? `at most ${number(queue.behindHead)}` : counted('waiting')],
    ['Offered', counted('offered')],
    ['Bought', counted('bought')],
    ['Lapsed', counted('lapsed')],
    ['Left the queue', counted('left')],
    ['Places given', number(queue.places)],
    ['Order', queue.order],
    ['Nobody waits up to rank', queue.head === 0 ? '' : number(queue.head)],
    ['Hopeless from rank', queue.hopelessFrom === undefined ? '' : number(queue.hopelessFrom)],
    ['Free units', queue.freeUnits === undefined ? '' : number(queue.freeUnits)],
    ['Offers so far', number(queue.offersMade)],
    ['Offers in the last minute', number(queue.offersLastMinute)],
    ['Offers in a minute at most', queue.perMinute === undefined ? 'no bound' : number(queue.perMinute)],
    ['Drawn', time(draw.drawnAt)],
  ];
}
