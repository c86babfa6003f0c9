import { describe, expect, it } from 'vitest';
import {
  ForbiddenTransition,
  type PurchaseState,
  type SegmentMark,
} from '../../../../src/engine/purchase/purchase.ts';
import { NO_NOTE } from '../../../../src/engine/sale/order-note.ts';
import { NO_RULES } from '../../../../src/engine/sale/rules.ts';
import { aLivePurchase, codesOf, type ToldPurchase } from '../../../support/engine/purchases.ts';
import { aServer } from '../../../support/engine/scripted-takes.ts';

type Step = (purchase: ToldPurchase) => void;

const order = { orderId: '900', seq: 7 };
const MARK: SegmentMark = { generation: 1, returned: 3, server: aServer() };

/** How a purchase gets into each state. */
const INTO: Readonly<Record<PurchaseState, readonly Step[]>> = {
  queued: [],
  parked: [(p) => p.park()],
  sent: [(p) => p.send()],
  unconfirmed: [(p) => p.send(), (p) => p.lose(MARK)],
  taken: [(p) => p.send(), (p) => p.take(5, '1001', 1)],
  checking: [(p) => p.send(), (p) => p.take(5, '1001', 1), (p) => p.check()],
  settled: [(p) => p.refuse({ code: 'sold_out' })],
};
const STATES = Object.keys(INTO) as PurchaseState[];

function aPurchaseThatIs(state: PurchaseState): ToldPurchase {
  const purchase = aLivePurchase({ quantity: 2 });
  purchase.name('1001');
  for (const step of INTO[state]) step(purchase);
  expect(purchase.state).toBe(state);
  return purchase;
}

/** Each transition, and where it leads from each state in which it is allowed. A settled purchase ignores all of them. */
const TRANSITIONS: Readonly<Record<string, readonly [Step, Partial<Record<PurchaseState, PurchaseState>>]>> =
  {
    letIn: [
      (p) => p.letIn('rules', undefined),
      { queued: 'queued', parked: 'parked', unconfirmed: 'unconfirmed' },
    ],
    send: [(p) => p.send(), { queued: 'sent', parked: 'sent', sent: 'sent', unconfirmed: 'unconfirmed' }],
    lose: [(p) => p.lose(MARK), { sent: 'unconfirmed', unconfirmed: 'unconfirmed' }],
    answered: [
      (p) => p.answered(MARK),
      { queued: 'queued', parked: 'parked', sent: 'sent', unconfirmed: 'sent' },
    ],
    requeue: [
      (p) => p.requeue(),
      { queued: 'queued', parked: 'queued', sent: 'queued', unconfirmed: 'unconfirmed' },
    ],
    park: [
      (p) => p.park(),
      { queued: 'parked', parked: 'parked', sent: 'parked', unconfirmed: 'unconfirmed' },
    ],
    take: [(p) => p.take(5, '1001', 1), { sent: 'taken' }],
    find: [(p) => p.find(order, 1), { queued: 'taken', parked: 'taken', sent: 'taken', checking: 'taken' }],
    check: [(p) => p.check(), { taken: 'checking' }],
    checkAnew: [(p) => p.checkAnew(), { taken: 'checking', checking: 'checking' }],
    refuse: [(p) => p.refuse({ code: 'paused' }), { queued: 'settled', parked: 'settled', sent: 'settled' }],
    commit: [(p) => p.commit(), { taken: 'settled' }],
    accept: [(p) => p.accept(), { taken: 'settled' }],
    reject: [(p) => p.reject({ code: 'sold_out' }), { taken: 'settled' }],
    giveUp: [
      (p) => p.giveUp(),
      Object.fromEntries(STATES.map((state) => [state, 'settled' satisfies PurchaseState])),
    ],
    expire: [
      (p) => p.expire(true),
      Object.fromEntries(STATES.map((state) => [state, 'settled' satisfies PurchaseState])),
    ],
  };

const cases = Object.entries(TRANSITIONS).flatMap(([name, [step, leads]]) =>
  STATES.map((from) => ({ name, step, from, to: leads[from] })),
);

describe('a transition', () => {
  it.each(cases.filter(({ from, to }) => from !== 'settled' && to !== undefined))(
    '$name leads from $from to $to',
    ({ step, from, to }) => {
      const purchase = aPurchaseThatIs(from);
      step(purchase);
      expect(purchase.state).toBe(to);
      expect(purchase.told).toHaveLength(to === 'settled' ? 1 : 0);
    },
  );

  it.each(cases.filter(({ from, to }) => from !== 'settled' && to === undefined))(
    '$name is forbidden from $from: it throws, and changes nothing',
    ({ name, step, from }) => {
      const purchase = aPurchaseThatIs(from);
      const before = { ...purchase };
      expect(() => step(purchase)).toThrow(ForbiddenTransition);
      expect(() => step(purchase)).toThrow(expect.objectContaining({ code: 'forbidden_transition' }));
      expect(() => step(purchase)).toThrow(
        `the purchase of buyer anna in sale sale (order 1001) is ${from}: "${name}" is not allowed`,
      );
      expect(purchase.state).toBe(from);
      expect({ ...purchase }).toEqual(before);
      expect(purchase.told).toEqual([]);
    },
  );

  it.each(cases.filter(({ from }) => from === 'settled'))(
    '$name is ignored by a settled purchase',
    ({ step, from }) => {
      const purchase = aPurchaseThatIs(from);
      const before = { ...purchase };
      step(purchase);
      expect({ ...purchase }).toEqual(before);
      expect(codesOf([purchase])).toEqual(['sold_out']);
    },
  );
});

describe('a deadline', () => {
  it.each<[PurchaseState, boolean, string]>([
    ['queued', true, 'busy'],
    ['queued', false, 'busy'],
    ['parked', true, 'unavailable'],
    ['parked', false, 'unavailable'],
    ['sent', true, 'unknown'],
    ['sent', false, 'unknown'],
    ['unconfirmed', true, 'unknown'],
    ['unconfirmed', false, 'unknown'],
    ['taken', true, 'accepted'],
    ['taken', false, 'unknown'],
    ['checking', true, 'unknown'],
    ['checking', false, 'unknown'],
  ])('finds the purchase %s (durable: %s) and answers %s', (state, durable, code) => {
    const purchase = aPurchaseThatIs(state);
    purchase.expire(durable);
    expect(codesOf([purchase])).toEqual([code]);
  });
});

describe('a purchase', () => {
  it('has what its caller said, and defaults for what the caller left out', () => {
    expect(aLivePurchase()).toMatchObject({ onBehalf: false, token: '', note: NO_NOTE });
    const said = { onBehalf: true, token: 'a token', note: '{"seat":7}', key: 'click', awaitCommit: false };
    expect(aLivePurchase(said)).toMatchObject(said);
  });

  it('has no order, entry or rules before it is let in', () => {
    const nothing = { orderId: '', seq: 0, generation: 0, entry: '', rules: NO_RULES, precheck: undefined };
    expect(aLivePurchase()).toMatchObject(nothing);
  });

  it('keeps its first id, also while it is unconfirmed', () => {
    const purchase = aPurchaseThatIs('unconfirmed');
    purchase.name('1002');
    expect(purchase.orderId).toBe('1001');
  });

  it('names its order and the entry when it is taken, and in its outcomes', () => {
    const committed = aPurchaseThatIs('taken');
    expect(committed).toMatchObject({ orderId: '1001', seq: 5, entry: '1001', generation: 1 });
    committed.commit();
    expect(committed.told).toEqual([{ code: 'committed', orderId: '1001', quantity: 2 }]);
    const accepted = aPurchaseThatIs('taken');
    accepted.accept();
    expect(accepted.told).toEqual([{ code: 'accepted', orderId: '1001', quantity: 2 }]);
  });

  it('is the order that its key names, if the record knows the key', () => {
    const purchase = aPurchaseThatIs('queued');
    purchase.find(order, 3);
    expect(purchase).toMatchObject({ orderId: '900', seq: 7, entry: '', generation: 3 });
  });

  it('is checked because of a watermark once in a generation', () => {
    const purchase = aPurchaseThatIs('checking');
    purchase.find(order, 1);
    expect(purchase.wasChecked).toBe(true);
    expect(() => purchase.check()).toThrow(ForbiddenTransition);
    purchase.checkAnew();
    purchase.find(order, 2);
    expect(purchase.wasChecked).toBe(false);
    purchase.check();
    expect(purchase.state).toBe('checking');
  });
});

describe('a purchase that the segment has answered after a lost reply', () => {
  const more = { ...MARK, returned: 4 };
  const marks: readonly (readonly [string, SegmentMark])[] = [
    ['units came back meanwhile', more],
    ['the sale was rebuilt meanwhile', { ...MARK, generation: 2 }],
    ['the server was started again meanwhile', { ...MARK, server: aServer() }],
    ['the server is not known', { ...MARK, server: undefined }],
  ];
  const answered = (now: SegmentMark) => {
    const purchase = aPurchaseThatIs('unconfirmed');
    purchase.answered(now);
    return purchase;
  };

  it('is refused if its order can’t have left the buyer’s record', () => {
    const purchase = answered({ ...MARK });
    purchase.refuse({ code: 'sold_out' });
    expect(codesOf([purchase])).toEqual(['sold_out']);
  });

  it.each(marks)('is unknown instead of refused if %s', (_, now) => {
    const purchase = answered(now);
    purchase.requeue();
    purchase.refuse({ code: 'sold_out' });
    expect(codesOf([purchase])).toEqual(['unknown']);
  });

  it.each(marks)('is committed, but not called accepted before, if it is taken again and %s', (_, now) => {
    const purchases = [answered(now), answered(now), answered(now)] as const;
    for (const purchase of purchases) purchase.take(5, '1001', now.generation);
    purchases[0].commit();
    purchases[1].accept();
    purchases[2].expire(true);
    expect(codesOf(purchases)).toEqual(['committed', 'unknown', 'unknown']);
  });

  it.each([
    ['holds its order', '1001', 'accepted'],
    ['holds another order of its key, taken since its own left', '900', 'unknown'],
  ])('whose buyer’s record %s (%s) is %s', (_, orderId, code) => {
    const purchase = answered(more);
    purchase.find({ orderId, seq: 7 }, 1);
    purchase.accept();
    expect(codesOf([purchase])).toEqual([code]);
  });

  it('is not accepted if the record may hold a second take of its order', () => {
    const twice = aPurchaseThatIs('unconfirmed');
    twice.lose(MARK);
    twice.answered(more);
    twice.find({ orderId: '1001', seq: 7 }, 1);
    twice.accept();
    const again = answered(more);
    again.take(5, '1001', 1);
    again.check();
    again.find({ orderId: '1001', seq: 5 }, 1);
    again.expire(true);
    expect(codesOf([twice, again])).toEqual(['unknown', 'unknown']);
  });

  it('may have left since the first lost reply, not only since the last', () => {
    const purchase = aPurchaseThatIs('unconfirmed');
    purchase.lose(more);
    purchase.answered(more);
    purchase.refuse({ code: 'sold_out' });
    expect(codesOf([purchase])).toEqual(['unknown']);
  });

  it('was not taken by the attempts before, so only the next ones count', () => {
    const purchase = answered({ ...MARK });
    purchase.lose(more);
    purchase.answered(more);
    purchase.refuse({ code: 'sold_out' });
    expect(codesOf([purchase])).toEqual(['sold_out']);
  });
});

describe('the trace of a purchase', () => {
  const traced = () => {
    const states: string[] = [];
    const trace = { entered: (state: string) => void states.push(state), sent: () => {} };
    return { states, purchase: aLivePurchase({ trace }) };
  };

  it('notes each state that the purchase enters, from the first to the last', () => {
    const { states, purchase } = traced();
    for (const step of INTO.taken) step(purchase);
    purchase.commit();
    expect(states).toEqual(['queued', 'sent', 'taken', 'settled']);
  });

  it('notes each attempt, and that an attempt was lost', () => {
    const { states, purchase } = traced();
    purchase.send();
    purchase.requeue();
    purchase.send();
    purchase.lose(MARK);
    purchase.send();
    purchase.answered(MARK);
    purchase.take(5, '1001', 1);
    expect(states).toEqual(['queued', 'sent', 'queued', 'sent', 'unconfirmed', 'sent', 'taken']);
  });

  it('notes nothing after the end', () => {
    const { states, purchase } = traced();
    purchase.giveUp();
    purchase.send();
    purchase.take(5, '1001', 1);
    expect(states).toEqual(['queued', 'settled']);
  });
});
