/** One sale of a run: its buyers, its operators, and who audits it. */
import type { Auditor } from './audit/auditor.ts';
import type { SaleAuditor } from './audit/sale-auditor.ts';
import type { SimNode } from './machines/sim-node.ts';
import type { World } from './machines/world.ts';
import { Crowd } from './people/crowd.ts';
import { Lives } from './people/lives.ts';
import { Operators } from './people/operators.ts';
import { Payers } from './people/payers.ts';
import type { Scenario } from './plan/scenario.ts';
import { People } from './queue/people.ts';
import { QueueOperators } from './queue/queue-operators.ts';

export interface SaleRunParts {
  readonly world: World;
  /** Those that buyers use. */
  readonly nodes: readonly SimNode[];
  readonly auditor: Auditor;
  /** Whether it is known how each purchase of this buyer ended, in all sales. */
  isQuiet(buyerId: string): boolean;
}

export class SaleRun {
  readonly scenario: Scenario;
  readonly auditor: SaleAuditor;
  readonly payers: Payers;
  readonly crowd: Crowd;
  readonly operators: Operators;
  readonly lives: Lives;
  /** Absent: the sale has no queue. */
  readonly people: People | undefined;
  readonly #queueOperators: QueueOperators | undefined;

  constructor(saleId: string, scenario: Scenario, { world, nodes, auditor, isQuiet }: SaleRunParts) {
    this.scenario = scenario;
    this.auditor = auditor.watch(saleId);
    this.payers = new Payers(scenario, nodes, this.auditor);
    this.crowd = new Crowd(scenario, nodes, this.auditor, this.payers);
    this.operators = new Operators(scenario, world, nodes, this.auditor, isQuiet);
    this.lives = new Lives(scenario, nodes, this.auditor);
    const { queue } = scenario;
    if (queue) this.auditor.watchQueue();
    this.people = queue && new People(queue, scenario, world, nodes, this.auditor);
    this.#queueOperators = queue && new QueueOperators(queue, scenario, nodes, this.auditor);
  }

  begin(): void {
    this.crowd.begin();
    this.operators.begin();
    this.lives.begin();
    this.people?.begin();
    this.#queueOperators?.begin();
  }
}
