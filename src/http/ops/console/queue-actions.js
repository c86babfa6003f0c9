// What operators do with a queue: what each action says before, and what it sends.
import { call, saleUrl } from './api.js';
import { ask, REASON } from './dialogs.js';
import { number, plural } from './format.js';

const NUMBER = { type: 'number', step: 1, inputmode: 'numeric', required: true };

export const FITS = {
  less: 'it gets an offer of fewer',
  wait: 'it waits for more units',
  pass: 'it is passed',
};

/**
 * Asks, sends the change, and hands over the queue as it is then.
 * @param {(queue: object) => void} changed
 */
function change({ saleId }, changed, { body, done, fields = [], ...dialog }) {
  ask({
    ...dialog,
    fields: [...fields, REASON],
    run: async ({ reason, ...values }) => {
      const sent = { ...body(values), ...(reason && { reason }) };
      changed(await call('PATCH', `${saleUrl(saleId)}/queue`, sent));
      return done;
    },
  });
}

export function pauseOffers(queue, changed) {
  change(queue, changed, {
    title: `Stop the offers of ${queue.saleId}`,
    go: 'Stop the offers',
    lines: () => [
      waitingText(queue),
      'They keep their places. No further offer is begun; those that were begun before are still made.',
      'Offers that buyers have stay, and can be accepted.',
    ],
    body: () => ({ action: 'pause' }),
    done: 'The offers are stopped.',
  });
}

export function resumeOffers(queue, changed) {
  change(queue, changed, {
    title: `Resume the offers of ${queue.saleId}`,
    go: 'Resume the offers',
    lines: () => [waitingText(queue), freeText(queue), paceText(queue)],
    body: () => ({ action: 'resume' }),
    done: 'The offers go on.',
  });
}

export function handOutOffers(queue, changed) {
  change(queue, changed, {
    title: `Hand out offers of ${queue.saleId}`,
    go: 'Hand them out',
    fields: [{ ...NUMBER, name: 'offers', label: 'Offers', min: 0 }],
    lines: ({ offers }) => [
      waitingText(queue),
      freeText(queue),
      handedText(offers),
      `${plural(queue.allowed, 'offer')} left of an earlier number; the new one replaces it.`,
    ],
    body: ({ offers }) => ({ action: 'hand-out', offers: Number(offers) }),
    done: 'The offers are handed out.',
  });
}

function handedText(offers) {
  if (offers === '')
    return 'So many of the next places get an offer as soon as units are free. Then the offers stop again.';
  if (Number(offers) === 0) return 'No further offer is made.';
  const [next, get] =
    offers === '1' ? ['next place', 'gets'] : [`next ${number(Number(offers))} places`, 'get'];
  return `The ${next} ${get} an offer as soon as units are free. Then the offers stop again.`;
}

export function paceOffers(queue, changed) {
  change(queue, changed, {
    title: `Set the pace of ${queue.saleId}`,
    go: 'Set the pace',
    fields: [
      {
        ...NUMBER,
        required: false,
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
  });
}

/** The settings belong to the sale. To turn a queue on or off, or to draw it, is left to `stockade sale queue`. */
export function changeSettings(queue, changed) {
  const value = (name) => String(queue[name]);
  ask({
    title: `Change the settings of the queue of ${queue.saleId}`,
    go: 'Change the settings',
    fields: [
      { ...NUMBER, name: 'offerSeconds', label: 'Seconds to accept an offer', min: 1, max: 31_536_000 },
      {
        ...{
          ...NUMBER,
          name: 'presenceSeconds',
          label: 'Seconds until a silent buyer is absent',
          min: 0,
          max: 86_400,
        },
        hint: '0: nobody is ever absent.',
      },
      { ...NUMBER, name: 'maxWaiting', label: 'Places behind the head at most', min: 1, max: 10_000_000 },
      { name: 'fit', label: 'If the next place wants more units than are free', options: FITS },
    ]
      .map((field) => ({ ...field, value: value(field.name) }))
      .concat(REASON),
    lines: (values) => [
      waitingText(queue),
      ...(values.maxWaiting !== '' && Number(values.maxWaiting) <= queue.behindHead
        ? [
            `${plural(queue.behindHead, 'place')} are behind the head now: they stay, and new buyers are refused.`,
          ]
        : []),
      'Changes take effect at once. Offers that buyers have keep their time.',
    ],
    run: async ({ reason, ...values }) => {
      // Only what was changed here: another operator may have changed the rest.
      const settings = Object.entries(values)
        .filter(([name, text]) => text !== value(name))
        .map(([name, text]) => [name, name === 'fit' ? text : Number(text)]);
      if (settings.length === 0) return 'Nothing was changed.';
      const sent = { action: 'queue', ...Object.fromEntries(settings), ...(reason && { reason }) };
      await call('PATCH', saleUrl(queue.saleId), sent);
      // The change is made, whether it can be shown now or at the next look.
      await call('GET', `${saleUrl(queue.saleId)}/queue`).then(changed, () => {});
      return 'The settings are changed.';
    },
  });
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
