// Views of the whole shop: refunds that are due, dead events, and its nodes.
import { call } from './api.js';
import { ask } from './dialogs.js';
import { el, setText, table } from './dom.js';
import { number, plural, rate, time } from './format.js';
import { NODE_ONLY } from './live.js';
import { orderTable } from './orders.js';

export function refundsView() {
  const panel = el('div', {}, el('p', { class: 'note' }, 'Reading the refunds …'));
  const read = async () => {
    const { orders, next } = await call('GET', 'v1/refunds-due');
    panel.replaceChildren(
      el(
        'p',
        { class: 'note' },
        orders.length === 0
          ? 'No refund is due.'
          : `${next === undefined ? '' : 'More than '}${plural(orders.length, 'order')} paid too late, after the units were sold to others. Pay the money back, then report it with: stockade order refund`,
      ),
      ...(orders.length === 0 ? [] : [orderTable('Refunds due, the oldest first', orders, true)]),
    );
  };
  read().catch((error) => panel.replaceChildren(el('p', { class: 'refused' }, error.message)));
  const element = el(
    'section',
    { 'aria-labelledby': 'title' },
    el('h1', { id: 'title' }, 'Refunds due'),
    panel,
  );
  return { element, stream: NODE_ONLY, set() {} };
}

export function eventsView() {
  const panel = el('div', {}, el('p', { class: 'note' }, 'Reading the dead events …'));
  const refused = el('p', { class: 'refused', role: 'alert' });
  // What was sent again stays so, also if this fails.
  const read = () => fill().catch((error) => setText(refused, error.message));
  const fill = async () => {
    const { total, dead } = await call('GET', 'v1/events/dead');
    const all = el('button', { type: 'button' }, 'Send all again');
    all.addEventListener('click', () => askAll(total, read));
    panel.replaceChildren(
      el(
        'p',
        { class: 'note' },
        total === 0
          ? 'No dead events: the webhook has accepted everything so far, or there is none.'
          : `${plural(total, 'page of events was', 'pages of events were')} not accepted by the webhook in any attempt.${total > dead.length ? ` The ${number(dead.length)} oldest are shown.` : ''}`,
      ),
      ...(total === 0 ? [] : [el('div', { class: 'buttons' }, all), deadTable(dead, read)]),
    );
  };
  void read();
  const element = el(
    'section',
    { 'aria-labelledby': 'title' },
    el('h1', { id: 'title' }, 'Dead events'),
    refused,
    panel,
  );
  return { element, stream: NODE_ONLY, set() {} };
}

const AGAIN = [
  'What the webhook does not accept becomes dead again after all attempts.',
  'Receivers may get an event twice. They recognize it by its id.',
];

function askAll(total, read) {
  ask({
    title: 'Send all dead events again',
    go: 'Send them again',
    lines: () => [
      `${plural(total, 'page of events', 'pages of events')} will be sent to the webhook before all younger ones.`,
      ...AGAIN,
    ],
    run: async () => {
      const { resent } = await call('POST', 'v1/events/dead/resend');
      await read();
      return `${plural(resent, 'page of events', 'pages of events')} will be sent again.`;
    },
  });
}

function askOne({ id, kind, orderIds, failedWith }, read) {
  ask({
    title: `Send ${id} again`,
    go: 'Send it again',
    lines: () => [
      `${kind} of ${plural(orderIds.length, 'order')} will be sent to the webhook. It was not accepted because: ${failedWith}.`,
      ...AGAIN,
    ],
    run: async () => {
      await call('POST', `v1/events/dead/${encodeURIComponent(id)}/resend`);
      await read();
      return `${id} will be sent again.`;
    },
  });
}

function deadTable(dead, read) {
  const headings = ['Kind', 'Happened', 'Dead since', { text: 'Attempts', class: 'n' }, 'Why', 'Orders', ''];
  return table('Dead events, the oldest first', headings, dead, (each) => {
    const button = el('button', { type: 'button', 'aria-label': `Send ${each.id} again` }, 'Send again');
    button.addEventListener('click', () => askOne(each, read));
    return [
      each.kind,
      time(each.at),
      time(each.deadAt),
      number(each.attempts),
      each.failedWith,
      `${number(each.orderIds.length)}: ${each.orderIds.slice(0, 3).join(', ')}${each.orderIds.length > 3 ? ' …' : ''}`,
      button,
    ];
  });
}

const PROCESS_HEADINGS = [{ text: 'Process', class: 'long' }, 'Version', 'Settings'];

export class NodesView {
  stream = NODE_ONLY;
  #processes = el('div');
  #answers = el('div');
  #shown = '';
  element = el(
    'section',
    { 'aria-labelledby': 'title' },
    el('h1', { id: 'title' }, 'Nodes'),
    el(
      'p',
      { class: 'note' },
      'All processes of the shop that have reported within the last ten seconds, and the shared settings in which each differs from this node.',
    ),
    this.#processes,
    el('h2', {}, 'Answers of this node to purchases'),
    this.#answers,
  );

  set({ process, version, others, node }) {
    const shown = JSON.stringify([process, version, others]);
    if (shown !== this.#shown) {
      this.#shown = shown;
      const all = [{ process, version, isThis: true, differs: [] }, ...others];
      this.#processes.replaceChildren(
        table('Processes of the shop', PROCESS_HEADINGS, all, (each) => [
          each.isThis ? `${each.process} (this node)` : each.process,
          each.version === version ? each.version : `${each.version}, another version`,
          each.isThis
            ? 'those that the others are compared with'
            : each.differs.length === 0
              ? 'the same'
              : el('span', { class: 'state bad' }, `other ${each.differs.join(', ')}`),
        ]),
      );
    }
    const byCode = Object.entries(node.value?.perSecond?.byCode ?? {}).sort(([, a], [, b]) => b - a);
    this.#answers.replaceChildren(
      byCode.length === 0
        ? el('p', { class: 'note' }, 'No purchase in the last second.')
        : table(
            'Answers in the last second',
            ['Answer', { text: 'Per second', class: 'n' }],
            byCode,
            ([code, perSecond]) => [code.replaceAll('_', ' '), rate(perSecond)],
          ),
    );
  }
}
