/** Buyers and operators: what they request, and what they do without an answer. */
import type { Outcome, Purchase } from '../../../src/engine/contract.ts';
import { BY } from '../../support/author.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import type { SimNode } from '../machines/sim-node.ts';
import { time, WORLD } from '../machines/virtual-time.ts';
import type { Scenario } from '../plan/scenario.ts';
import { atNode, changeSale } from './operators.ts';
import type { Payers } from './payers.ts';

/**
 * An answer may be this much later than the deadline, because deadlines are checked at intervals and timers are late.
 */
const DEADLINE_SLACK_MS = 40;
const RETRY_MS = 60;
const MAX_ATTEMPTS = 6;
/** After these outcomes it is unknown whether there is an order. */
const OPEN = new Set(['unknown', 'gone']);
/** After these outcomes nothing was taken: the buyer tries again. */
const TRY_AGAIN = new Set(['busy', 'unavailable', 'unknown_sale']);

export interface Request {
  readonly purchase: Purchase;
  /** The outcome of the newest attempt; `gone`: its node died; `undefined`: it waits. */
  code: Outcome['code'] | 'gone' | undefined;
  outcome: Outcome | undefined;
  attempts: number;
}

export class Crowd {
  readonly requests: Request[] = [];
  /** By buyer: attempts for which it is unknown whether anything was taken. */
  readonly openAttempts = new Map<string, number>();
  readonly #scenario: Scenario;
  readonly #nodes: readonly SimNode[];
  readonly #auditor: SaleAuditor;
  readonly #payers: Payers;
  #keys = 0;

  /** Whether buyers return no order that they get from now on. */
  keepsOrders = false;

  constructor(scenario: Scenario, nodes: readonly SimNode[], auditor: SaleAuditor, payers: Payers) {
    this.#scenario = scenario;
    this.#nodes = nodes;
    this.#auditor = auditor;
    this.#payers = payers;
  }

  /** Spreads the requests over the run. */
  begin(): void {
    const { requests, lastsMs, buyers, weather } = this.#scenario;
    const { random } = time;
    for (let i = 0; i < requests; i++) {
      // Half of the buyers come in a rush.
      const at = random.chance(0.5) ? random.unit() * 40 : random.unit() * lastsMs;
      time.after(at, () => this.ask(this.#wish(`b${random.whole(1, buyers)}`)), WORLD);
    }
    for (let i = 0; i < weather.changes; i++)
      time.after(random.unit() * lastsMs, () => this.#operate(), WORLD);
    for (let i = 0; i < weather.rebuilds; i++)
      time.after(random.unit() * lastsMs, () => this.#rebuild(), WORLD);
    for (let i = 0; i < weather.topUps; i++) time.after(random.unit() * lastsMs, () => this.#topUp(), WORLD);
  }

  /** Whether it is known of each purchase of this buyer how it ended, and none is under way. */
  isQuiet(buyerId: string): boolean {
    return this.requests.every(
      ({ purchase, code }) =>
        purchase.buyerId !== buyerId || (code !== undefined && !OPEN.has(code) && !TRY_AGAIN.has(code)),
    );
  }

  #wish(name: string): Request {
    const { random } = time;
    // A buyer that has left for good does not come again.
    let buyerId = name;
    while (this.#auditor.left.has(buyerId)) buyerId = `${buyerId}again`;
    const known = this.requests.filter(({ purchase }) => purchase.buyerId === buyerId && purchase.key !== '');
    // Sometimes the same key again, as clients do that don't know the outcome.
    if (known.length > 0 && random.chance(0.25)) return request(random.pick(known).purchase);
    return request({
      saleId: this.#auditor.saleId,
      buyerId,
      quantity: random.whole(1, this.#scenario.limit),
      key: random.chance(0.6) ? `k${++this.#keys}` : '',
      awaitCommit: random.chance(this.#scenario.awaitsCommit),
    });
  }

  ask(request: Request): void {
    // The buyer may have left for good while no node was up.
    if (this.#auditor.left.has(request.purchase.buyerId)) return;
    const node = this.#nodeOfBuyers();
    if (!node) return void time.after(RETRY_MS, () => this.ask(request), WORLD);
    this.requests.push(request);
    this.#attempt(request, node);
  }

  /** A node that is running now. */
  #anyNode(): SimNode | undefined {
    const up = this.#nodes.filter((node) => node.running);
    return up.length > 0 ? time.random.pick(up) : undefined;
  }

  #nodeOfBuyers(): SimNode | undefined {
    return this.#scenario.asksOneNode && this.#nodes[0]!.running ? this.#nodes[0] : this.#anyNode();
  }

  #attempt(request: Request, node: SimNode): void {
    const { purchase } = request;
    const { machine } = node;
    const asked = { begun: time.now, life: this.#auditor.life };
    const attempt = ++request.attempts;
    request.code = undefined;
    const isOpen = () => request.attempts === attempt && request.code === undefined;
    const end = this.#auditor.takes.begin(purchase);
    const worker = time.random.whole(0, this.#scenario.node.workers - 1);
    this.#auditor.trace(`${purchase.buyerId} asks ${node.name} for ${purchase.quantity} ${purchase.key}`);
    time.after(
      0,
      () =>
        node.buy(purchase, worker, (outcome) => {
          if (!isOpen()) this.#auditor.fail(`P6: ${purchase.buyerId} was answered twice`);
          end();
          request.code = outcome.code;
          request.outcome = outcome;
          this.#auditor.trace(`${purchase.buyerId} is told ${JSON.stringify(outcome)}`);
          this.#auditor.answered(purchase.buyerId, outcome, asked, node.hasBelievedBoard(asked.begun));
          time.after(time.random.unit() * RETRY_MS, () => this.#goOn(request), WORLD);
        }),
      machine,
    );
    time.after(
      this.#scenario.node.requestDeadlineMs + DEADLINE_SLACK_MS,
      () => {
        end();
        if (!isOpen()) return;
        if (machine.isAlive) this.#auditor.fail(`P6: ${purchase.buyerId} got no answer by the deadline`);
        request.code = 'gone';
        this.#goOn(request);
      },
      WORLD,
    );
  }

  /** Reacts to an answer as a client would. */
  #goOn(request: Request): void {
    const { purchase, outcome, code } = request;
    if (OPEN.has(code!)) {
      const { buyerId } = purchase;
      this.openAttempts.set(buyerId, (this.openAttempts.get(buyerId) ?? 0) + 1);
    }
    const isOpen = OPEN.has(code!) && purchase.key !== '';
    if ((isOpen || TRY_AGAIN.has(code!)) && request.attempts < MAX_ATTEMPTS) {
      const node = this.#nodeOfBuyers();
      if (node) this.#attempt(request, node);
      else time.after(RETRY_MS, () => this.#goOn(request), WORLD);
    } else if (code === 'committed' && outcome?.code === code) {
      if (this.#scenario.dealings.payments) this.#payers.ordered(outcome.orderId);
      else this.#changeOrder(outcome.orderId);
    }
  }

  #changeOrder(orderId: string): void {
    const { random } = time;
    if (this.keepsOrders || !random.chance(this.#scenario.changesOrder)) return;
    const kinds = random.chance(0.5) ? (['cancel'] as const) : (['pay', 'refund'] as const);
    const later = random.chance(0.3) ? random.unit() * 2_500 : random.unit() * 100;
    time.after(later, () => this.#change(orderId, kinds), WORLD);
  }

  #change(orderId: string, [kind, ...others]: readonly ('cancel' | 'pay' | 'refund')[]): void {
    const node = this.#anyNode();
    if (!node || !kind) return;
    if (kind !== 'pay') this.#auditor.askedBack.add(orderId);
    const change = kind === 'pay' ? ({ kind, payType: 'card' } as const) : { kind };
    atNode(node, `${kind} ${orderId}`, this.#auditor, async ({ orders }) => {
      const { code } = await orders.changeOrder(orderId, change, BY);
      time.after(time.random.unit() * 200, () => this.#change(orderId, others), WORLD);
      return code;
    });
  }

  #operate(): void {
    const { random } = time;
    const node = this.#anyNode();
    if (!node) return;
    const pick = random.whole(0, 8);
    if (pick === 0) {
      changeSale(node, { action: 'pause' }, this.#auditor);
      time.after(
        random.unit() * 400,
        () => changeSale(this.#anyNode() ?? node, { action: 'resume' }, this.#auditor),
        WORLD,
      );
    } else if (pick <= 2) changeSale(node, { action: 'top-up', units: random.whole(1, 6) }, this.#auditor);
    else if (pick <= 4) changeSale(node, { action: 'withdraw', units: random.whole(1, 4) }, this.#auditor);
    else if (pick <= 6) this.#resize(node);
    else if (pick === 7)
      atNode(node, 'rebalance', this.#auditor, ({ service }) =>
        service.rebalance(this.#auditor.saleId, { dryRun: false }),
      );
    else this.#recover(node);
  }

  #rebuild(): void {
    const node = this.#anyNode();
    if (!node) return;
    if (time.random.chance(0.5)) this.#resize(node);
    else this.#recover(node);
  }

  #resize(node: SimNode): void {
    changeSale(node, { action: 'resize', segments: time.random.whole(1, 5) }, this.#auditor);
  }

  #recover(node: SimNode): void {
    atNode(node, 'recover', this.#auditor, ({ service }) => service.recover(this.#auditor.saleId));
  }

  #topUp(): void {
    const node = this.#anyNode();
    if (node) changeSale(node, { action: 'top-up', units: time.random.whole(1, 2) }, this.#auditor);
  }
}

export function request(purchase: Purchase): Request {
  return { purchase, code: undefined, outcome: undefined, attempts: 0 };
}

/** A purchase by a caller that repeats it itself. */
export function onceOnly(purchase: Purchase): Request {
  return { ...request(purchase), attempts: MAX_ATTEMPTS };
}
