/**
 * An operator who closes a sale, archives it, deletes it and makes it again with the same id, while other sales sell and buyers go
 * on asking for it. Each step is tried again until it is seen in Postgres.
 *
 *   open ──> closed ──> archived ──> deleted: the next life ──> made again, with other numbers
 */
import { BY } from '../../support/author.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import type { SimNode } from '../machines/sim-node.ts';
import { time, WORLD } from '../machines/virtual-time.ts';
import { otherSale, saleToCreate } from '../plan/other-sales.ts';
import type { Scenario } from '../plan/scenario.ts';
import { atNode, changeSale } from './operators.ts';

const LOOK_EVERY_MS = 20;
/** A step that has not shown by then is tried again. */
const TRY_AGAIN_MS = 400;

export class Lives {
  readonly #scenario: Scenario;
  readonly #nodes: readonly SimNode[];
  readonly #auditor: SaleAuditor;
  #step = '';
  /** The next step is not tried before. */
  #notBefore = 0;

  constructor(scenario: Scenario, nodes: readonly SimNode[], auditor: SaleAuditor) {
    this.#scenario = scenario;
    this.#nodes = nodes;
    this.#auditor = auditor;
  }

  /** Whether the sale is there, in the last of its lives. */
  get isIdle(): boolean {
    return this.#auditor.life === this.#scenario.lives && this.#auditor.truth !== undefined;
  }

  begin(): void {
    if (this.#scenario.lives > 0) this.#look();
  }

  #look(): void {
    if (this.isIdle) return;
    this.#goOn();
    time.after(LOOK_EVERY_MS, () => this.#look(), WORLD);
  }

  #goOn(): void {
    const { truth, life, saleId } = this.#auditor;
    if (!truth && life === 0) return;
    if (!truth) this.#try('create', (node) => this.#create(node));
    else if (truth.state !== 'closed')
      this.#try('close', (node) => changeSale(node, { action: 'close' }, this.#auditor));
    else if (!truth.isArchived)
      // Not in the watch of the ledger: a repetition writes no row.
      this.#try('archive', (node) =>
        atNode(node, 'archive the sale', this.#auditor, ({ service }) =>
          service.change(saleId, { action: 'archive' }, BY),
        ),
      );
    else {
      const orders = truth.orders.length;
      this.#try('delete', (node) =>
        atNode(node, 'delete the sale', this.#auditor, ({ service }) => service.delete(saleId, orders, BY)),
      );
    }
  }

  #create(node: SimNode): void {
    const sale = saleToCreate(this.#auditor.saleId, { ...this.#scenario, ...otherSale(time.random) });
    atNode(node, `create ${JSON.stringify(sale)}`, this.#auditor, ({ service }) =>
      service.create(sale, BY.actor),
    );
  }

  #try(what: string, act: (node: SimNode) => void): void {
    const step = `${this.#auditor.life} ${what}`;
    if (step !== this.#step) {
      this.#step = step;
      this.#notBefore = time.now + time.random.unit() * this.#pauseBefore(what);
    }
    const up = this.#nodes.filter(({ running }) => running);
    if (up.length === 0 || time.now < this.#notBefore) return;
    this.#notBefore = time.now + TRY_AGAIN_MS;
    act(time.random.pick(up));
  }

  /** The longest time until a step is tried. Before it is closed, the sale lives for a while. */
  #pauseBefore(what: string): number {
    const { lastsMs, lives, pauseMs } = this.#scenario;
    return what === 'close' ? lastsMs / (lives + 1) : pauseMs;
  }
}
