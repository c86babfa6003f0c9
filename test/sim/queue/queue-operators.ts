/** An operator who changes the settings of a queue, and may turn it off for a while. */
import type { QueueJson } from '../../../src/engine/sale/queue-json.ts';
import { BY } from '../../support/author.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import type { SimNode } from '../machines/sim-node.ts';
import { time, WORLD } from '../machines/virtual-time.ts';
import { atNode } from '../people/operators.ts';
import type { Scenario } from '../plan/scenario.ts';
import type { QueuePlan } from './queue-plan.ts';

const OFF_MS = 600;

export class QueueOperators {
  readonly #plan: QueuePlan;
  readonly #lastsMs: number;
  readonly #nodes: readonly SimNode[];
  readonly #auditor: SaleAuditor;

  constructor(plan: QueuePlan, { lastsMs }: Scenario, nodes: readonly SimNode[], auditor: SaleAuditor) {
    this.#plan = plan;
    this.#lastsMs = lastsMs;
    this.#nodes = nodes;
    this.#auditor = auditor;
  }

  begin(): void {
    const { changes, turnsOff } = this.#plan;
    const { random } = time;
    for (let i = 0; i < changes; i++)
      time.after(random.unit() * this.#lastsMs, () => this.#change(this.#anyChange()), WORLD);
    if (turnsOff) time.after(random.unit() * this.#lastsMs * 0.8, () => this.#turnOff(), WORLD);
  }

  #anyChange(): QueueJson {
    const { random } = time;
    if (random.chance(0.5)) return { offerSeconds: random.pick([1, 3, 600]) };
    return { fit: random.pick(['wait', 'less', 'pass']) };
  }

  #turnOff(): void {
    this.#change({ queue: 'off' });
    const { order, offerSeconds, presenceSeconds, maxWaiting, fit } = this.#plan;
    const on = { queue: order, offerSeconds, presenceSeconds, maxWaiting, fit } as const;
    time.after(time.random.unit() * OFF_MS, () => this.#change(on), WORLD);
  }

  /** A change that finds the queue turned off is refused. */
  #change(change: QueueJson): void {
    const up = this.#nodes.filter(({ running }) => running);
    if (up.length === 0) return;
    atNode(time.random.pick(up), JSON.stringify(change), this.#auditor, ({ service }) =>
      service.change(this.#auditor.saleId, { action: 'queue', ...change }, BY),
    );
  }
}
