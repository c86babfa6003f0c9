/** Buyers that pay, in time or late, and a shop that redeems and refunds. */
import type { OrderChange, OrderOutcome } from '../../../src/operations/order-operations.ts';
import { BY } from '../../support/author.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import { isOfTheStores, type SimNode } from '../machines/sim-node.ts';
import { time, WORLD } from '../machines/virtual-time.ts';
import type { Scenario } from '../plan/scenario.ts';

const RETRY_MS = 300;
const MAX_ATTEMPTS = 6;
/** After this time without an answer a buyer tries again: the node has died, or its answer will be too late. */
const GIVE_UP_MS = 4_000;
/** Late payments come up to this much after the deadline, as do some that were meant to be in time. */
const LATE_MS = 2_500;
const EARLY_MS = 200;

/** It is unknown whether the change was made, or it could not be made. */
const ASK_AGAIN = new Set(['unknown', 'unavailable', 'busy']);

const PAY: OrderChange = { kind: 'pay', payType: 'card' };
const PAY_OTHERWISE: OrderChange = { kind: 'pay', payType: 'balance' };

export class Payers {
  readonly #scenario: Scenario;
  readonly #nodes: readonly SimNode[];
  readonly #auditor: SaleAuditor;
  #underWay = 0;

  constructor(scenario: Scenario, nodes: readonly SimNode[], auditor: SaleAuditor) {
    this.#scenario = scenario;
    this.#nodes = nodes;
    this.#auditor = auditor;
  }

  /** Whether no payment or change is planned or under way. */
  get isIdle(): boolean {
    return this.#underWay === 0;
  }

  /** Decides what will happen to a new order. */
  ordered(orderId: string): void {
    const { random } = time;
    const dueMs = this.#scenario.payWithinSeconds! * 1_000;
    const inTime = random.unit() * dueMs * 0.9;
    const late = dueMs - EARLY_MS + random.unit() * LATE_MS;
    const pick = random.whole(0, 9);
    if (pick <= 2) this.#later(inTime, () => this.#pay(orderId, PAY));
    else if (pick <= 5) this.#later(late, () => this.#pay(orderId, PAY));
    else if (pick === 6) this.#both(late, orderId, PAY, PAY_OTHERWISE);
    else if (pick === 7) this.#both(random.chance(0.5) ? inTime : late, orderId, PAY, PAY);
    else if (pick === 8) this.#both(inTime, orderId, PAY, { kind: 'cancel' });
  }

  /** Two changes at the same moment, mostly at different nodes. */
  #both(ms: number, orderId: string, one: OrderChange, other: OrderChange): void {
    for (const change of [one, other]) this.#later(ms, () => this.#pay(orderId, change));
  }

  #later(ms: number, act: () => void): void {
    this.#underWay++;
    time.after(
      ms,
      () => {
        act();
        this.#underWay--;
      },
      WORLD,
    );
  }

  #pay(orderId: string, change: OrderChange): void {
    this.#insist(orderId, change, (outcome) => {
      if (change.kind !== 'pay') return;
      if (outcome.code === 'done') this.#paid(outcome.order.orderId);
      else if (outcome.code === 'expired' && time.random.chance(0.7)) this.#atOnce(orderId, 'refund');
    });
  }

  #paid(orderId: string): void {
    const pick = time.random.whole(0, 5);
    if (pick <= 1) this.#atOnce(orderId, 'refund');
    else if (pick === 2) this.#atOnce(orderId, 'redeem');
    else if (pick === 3) for (const kind of ['refund', 'redeem'] as const) this.#insist(orderId, { kind });
  }

  #atOnce(orderId: string, kind: 'refund' | 'redeem'): void {
    this.#insist(orderId, { kind });
    if (time.random.chance(0.5)) this.#insist(orderId, { kind });
  }

  #insist(
    orderId: string,
    change: OrderChange,
    told: (outcome: OrderOutcome) => void = () => {},
    attempt = 1,
  ): void {
    this.#underWay++;
    this.#ask(orderId, change, (outcome) => {
      if (outcome && !ASK_AGAIN.has(outcome.code)) told(outcome);
      else if (attempt < MAX_ATTEMPTS)
        this.#later(RETRY_MS, () => this.#insist(orderId, change, told, attempt + 1));
      this.#underWay--;
    });
  }

  /** @param told called once, with the answer or without one */
  #ask(orderId: string, change: OrderChange, told: (outcome: OrderOutcome | undefined) => void): void {
    const up = this.#nodes.filter(({ running }) => running);
    const auditor = this.#auditor;
    let isOver = false;
    const end = (outcome: OrderOutcome | undefined) =>
      time.after(
        0,
        () => {
          if (!isOver) told(outcome);
          isOver = true;
        },
        WORLD,
      );
    if (up.length === 0) return void end(undefined);
    const node = time.random.pick(up);
    if (change.kind === 'refund' || change.kind === 'cancel') auditor.askedBack.add(orderId);
    auditor.trace(`${node.name} is to ${JSON.stringify(change)} ${orderId}`);
    time.after(GIVE_UP_MS, () => isOver || end(undefined), WORLD);
    time.after(
      0,
      () => {
        const { running } = node;
        if (!running) return void end(undefined);
        running.orders.changeOrder(orderId, change, BY).then(
          (outcome) => {
            auditor.trace(`${node.name} did ${change.kind} ${orderId}: ${JSON.stringify(outcome)}`);
            auditor.orders.told(orderId, change.kind, outcome);
            end(outcome);
          },
          (error) => {
            auditor.trace(`${node.name} could not ${change.kind} ${orderId}: ${error}`);
            if (!isOfTheStores(error))
              auditor.fail(`${node.name} failed to ${change.kind} ${orderId}: ${error.stack}`);
            end(undefined);
          },
        );
      },
      node.machine,
    );
  }
}
