/**
 * Disturbs syncs that share sales, at the moments at which it does the most harm: when a log holds orders that the sync is about
 * to copy, and when a sale has just changed hands. So another sync takes the sale over, while the first one may have a batch under
 * way. Often the next sync is disturbed at once, too.
 */
import type { Auditor } from '../audit/auditor.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import { network } from '../machines/network.ts';
import type { SimNode } from '../machines/sim-node.ts';
import { type Machine, time, WORLD } from '../machines/virtual-time.ts';
import type { World } from '../machines/world.ts';
import type { Scenario } from '../plan/scenario.ts';
import type { PgSession } from '../postgres/pg-server.ts';
import { isMoment, when } from './moments.ts';

/** Within this time of a new order, or of a hand-over, its batch is read, applied and announced. */
const BATCH_MS = 6;
const AWAY_LEAST_MS = 100;
const AWAY_MS = 1_500;
/** A sync that is asked to stop is killed after this time. */
const GRACE_MS = 1_500;
const DOWN_MS = 600;
/** The time to the next disturbance, if it comes in short order. */
const SHORT_MS = 400;

export class Disturbances {
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #nodes: readonly SimNode[];
  readonly #auditor: Auditor;
  #isOver = false;

  /** @param nodes all processes with a sync */
  constructor(scenario: Scenario, world: World, nodes: readonly SimNode[], auditor: Auditor) {
    this.#scenario = scenario;
    this.#world = world;
    this.#nodes = nodes;
    this.#auditor = auditor;
  }

  begin(): void {
    const { lastsMs, weather } = this.#scenario;
    for (let i = 0; i < weather.disturbances; i++)
      time.after(time.random.unit() * lastsMs, () => this.#disturb(), WORLD);
  }

  end(): void {
    this.#isOver = true;
  }

  #disturb(): void {
    const { sales } = this.#auditor;
    const before = new Map(sales.map(({ saleId }) => [saleId, this.#holderOf(saleId)]));
    const isBusy = (sale: SaleAuditor) =>
      this.#holderOf(sale.saleId) !== undefined && isMoment('backlog', sale, this.#world);
    const hasChanged = ({ saleId }: SaleAuditor) => {
      const holder = this.#holderOf(saleId);
      return holder !== undefined && holder !== before.get(saleId);
    };
    const isDue = time.random.chance(0.5) ? isBusy : hasChanged;
    let found: SaleAuditor | undefined;
    const look = () => {
      found = sales.find(isDue);
      return this.#isOver || found !== undefined;
    };
    const act = () => {
      const { saleId } = found ?? sales[0]!;
      const isForGiver = isDue === hasChanged && time.random.chance(0.3);
      this.#strike(isForGiver ? before.get(saleId) : this.#holderOf(saleId));
    };
    when(look, () => time.after(time.random.unit() * BATCH_MS, act, WORLD));
  }

  /** @param holder the session that has the locks of a sync */
  #strike(holder: PgSession | undefined): void {
    const node = this.#nodes.find(({ machine }) => machine === holder?.client);
    if (this.#isOver || !holder || !node?.running) return;
    const { random } = time;
    const ms = AWAY_LEAST_MS + random.unit() * AWAY_MS;
    const pick = random.whole(0, 4);
    if (pick === 0) this.#loseLocks(holder);
    else if (pick === 1) this.#delayBatches(node.machine, holder, ms);
    else if (pick === 2 || node.isServing) this.#kill(node);
    else if (pick === 3) this.#stop(node);
    else this.#stall(node, holder, ms);
    if (random.chance(0.4)) time.after(random.unit() * SHORT_MS, () => this.#disturb(), WORLD);
  }

  #loseLocks(holder: PgSession): void {
    this.#note(`${holder.client.name} loses its locks`);
    holder.cut();
  }

  /** What the sync sends to Postgres arrives late, when another sync has the sale. */
  #delayBatches(machine: Machine, holder: PgSession, ms: number): void {
    const { postgres } = this.#world;
    this.#note(`nothing passes from ${machine.name} to postgres for ${ms.toFixed(0)} ms`);
    for (const link of network.links)
      if (link.client === machine && link.server === postgres.machine) link.hang(ms);
    this.#loseLocks(holder);
  }

  #kill(node: SimNode): void {
    this.#note(`${node.name} dies`);
    this.#auditor.nodesDied++;
    node.crash();
    this.#comeBack(node);
  }

  #stop(node: SimNode): void {
    this.#note(`${node.name} is to stop`);
    const { machine } = node;
    node.stop(() => this.#comeBack(node));
    time.after(
      GRACE_MS,
      () => {
        if (machine.isAlive && node.machine === machine) this.#kill(node);
      },
      WORLD,
    );
  }

  /** A stalled process keeps its locks until its connection ends. */
  #stall({ machine }: SimNode, holder: PgSession, ms: number): void {
    this.#note(`${machine.name} stalls for ${ms.toFixed(0)} ms`);
    machine.stalledUntil = time.now + ms;
    if (time.random.chance(0.7)) time.after(time.random.unit() * ms, () => this.#loseLocks(holder), WORLD);
  }

  #comeBack(node: SimNode): void {
    time.after(time.random.unit() * DOWN_MS, () => node.isAlive || node.start(), WORLD);
  }

  #holderOf(saleId: string): PgSession | undefined {
    return this.#world.postgres.locks.get(saleId);
  }

  #note(what: string): void {
    this.#auditor.trace(`* ${what}`);
  }
}
