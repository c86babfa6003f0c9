/**
 * Operators that change the sale: two at the same moment at different nodes, or one at a node that is then cut off
 * from a store.
 */
import type { SaleChange } from '../../../src/engine/sale/sale-change.ts';
import { readBooks } from '../audit/books.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import { isMoment, type Moment, when } from '../faults/moments.ts';
import { network } from '../machines/network.ts';
import { isOfTheStores, type SimNode } from '../machines/sim-node.ts';
import { type Machine, time, WORLD } from '../machines/virtual-time.ts';
import type { World } from '../machines/world.ts';
import type { Scenario } from '../plan/scenario.ts';

/** The longest time between two operators that act at the same moment. */
const MOMENT_MS = 3;
/**
 * Other processes undo a change that did not end within 5 s, at most a second later. Its node comes back at about
 * that time.
 */
const AWAY_LEAST_MS = 4_800;
const AWAY_MS = 2_000;
const MAX_UNDO_LOOKS = 20_000;
/** A draft's first page is on its way within this time. Then it is delayed. */
const DRAFTING_MS = 6;
const UNREACHABLE_LEAST_MS = 1_100;
const UNREACHABLE_MS = 1_500;
const SET_BACK_MS = 10_000;
const REFILL_MS = 200;
const CLOSES_MS = 300;
const NOBODY_THERE_MS = 60;
/** A change that meets no fault is in Postgres within this time. */
const CHANGE_MS = 200;

const isDraft = (key: string) => key.endsWith(':draft');

export class Operators {
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #nodes: readonly SimNode[];
  readonly #auditor: SaleAuditor;
  readonly #isQuiet: (buyerId: string) => boolean;
  /** Changes that wait for a node. */
  #waiting = 0;
  /** The operator has seen the loss after which the sale is to be closed, and closes it. */
  #closesNow = false;
  #lastChangeAt = Number.NEGATIVE_INFINITY;

  /** @param isQuiet whether it is known how each purchase of this buyer ended, in all sales */
  constructor(
    scenario: Scenario,
    world: World,
    nodes: readonly SimNode[],
    auditor: SaleAuditor,
    isQuiet: (buyerId: string) => boolean,
  ) {
    this.#scenario = scenario;
    this.#world = world;
    this.#nodes = nodes;
    this.#auditor = auditor;
    this.#isQuiet = isQuiet;
  }

  /** Whether no change waits for a node or for a loss to be seen, or has just begun. */
  get isIdle(): boolean {
    const { closesAfterLoss } = this.#scenario.dealings;
    if (closesAfterLoss && this.#auditor.everLost && !this.#closesNow) return false;
    return this.#waiting === 0 && time.now - this.#lastChangeAt > CHANGE_MS;
  }

  begin(): void {
    const { lastsMs, dealings } = this.#scenario;
    const { random } = time;
    const sometime = (times: number, within: number, happens: () => void) => {
      for (let i = 0; i < times; i++) time.after(random.unit() * within, happens, WORLD);
    };
    sometime(dealings.pairs, lastsMs, () => this.#pair());
    sometime(dealings.slowWithdrawals, lastsMs / 8, () => this.#withdrawSlowly());
    sometime(dealings.undoneWithdrawals, lastsMs / 8, () => this.#withdrawUndone());
    sometime(dealings.slowResizes, lastsMs / 2, () => this.#resizeSlowly());
    sometime(dealings.erasures, lastsMs, () => this.#erase());
    if (dealings.refills > 0) this.#refill(dealings.refills);
    if (dealings.closesAtMs > 0)
      time.after(dealings.closesAtMs, () => this.#change({ action: 'close' }), WORLD);
    if (dealings.closesAfterLoss) {
      const { postgres } = this.#world;
      when(
        () => this.#auditor.everLost && postgres.machine.isAlive,
        () => {
          this.#closesNow = true;
          this.#changeLater(random.unit() * CLOSES_MS, { action: 'close' });
        },
      );
    }
  }

  /** Adds units as soon as there are none; again when these are sold. */
  #refill(times: number): void {
    const add = () => {
      this.#change({ action: 'top-up', units: time.random.whole(1, 2) });
      if (times > 1) this.#whenIs('forSale', () => this.#refill(times - 1));
    };
    this.#whenIs('soldOut', () => time.after(time.random.unit() * REFILL_MS, add, WORLD));
  }

  #whenIs(moment: Moment, act: () => void): void {
    when(() => isMoment(moment, this.#auditor, this.#world), act);
  }

  #pair(): void {
    const [one, other] = time.random.chance(0.5) ? [0, 1] : [1, 0];
    const same = time.random.chance(0.4) ? this.#anyChange() : undefined;
    for (const nth of [one, other]) {
      const change = same ?? this.#anyChange();
      time.after(time.random.unit() * MOMENT_MS, () => this.#change(change, this.#nodes[nth]), WORLD);
    }
  }

  #anyChange(): SaleChange {
    const { random } = time;
    switch (random.whole(0, 8)) {
      case 0:
      case 1:
        return { action: 'pause' };
      case 2:
      case 3:
        return { action: 'resume' };
      case 4:
      case 5:
        return { action: 'top-up', units: random.whole(1, 4) };
      case 6:
        return { action: 'withdraw', units: random.whole(1, 4) };
      case 7:
        return { action: 'resize', segments: random.whole(1, 5) };
      default:
        return { action: 'require-token', requireToken: random.chance(0.3) };
    }
  }

  /** Erases a buyer. A resize at the same moment may have the id in its draft. */
  #erase(): void {
    const { random } = time;
    const buyers = [...new Set(this.#auditor.promises.map(({ buyerId }) => buyerId))];
    const up = this.#nodes.filter(({ running }) => running);
    if (buyers.length === 0 || up.length === 0) return;
    const buyerId = random.pick(buyers);
    const running = random.chance(0.7);
    if (random.chance(0.5) && this.#isQuiet(buyerId)) this.#auditor.left.add(buyerId);
    if (random.chance(0.3)) this.#change({ action: 'resize', segments: random.whole(1, 5) });
    eraseBuyer(random.pick(up), { buyerId, running }, this.#auditor);
  }

  #withdrawSlowly(): void {
    const node = time.random.pick(this.#nodes);
    this.#change({ action: 'withdraw', units: time.random.whole(2, 8) }, node);
    const { machine } = this.#world.postgres;
    const ms = AWAY_LEAST_MS + time.random.unit() * AWAY_MS;
    when(
      () => (this.#auditor.truth?.openMovements ?? 0) > 0,
      () => this.#cutOff(node.machine, machine, ms),
    );
  }

  /**
   * Other processes undo a withdrawal whose node could not reach Postgres. It ends as soon as it can, while the others wait for
   * Redis.
   */
  #withdrawUndone(): void {
    const node = time.random.pick(this.#nodes);
    const { postgres, redis } = this.#world;
    this.#change({ action: 'withdraw', units: time.random.whole(2, 8) }, node);
    when(
      () => this.#areOut(),
      () => this.#cutOff(node.machine, postgres.machine, AWAY_LEAST_MS + time.random.unit() * AWAY_MS),
    );
    when(
      () => this.#auditor.truth?.ledger.some(({ detail }) => detail.undoing === true) ?? false,
      () => {
        for (const other of this.#nodes)
          for (const { machine } of redis) this.#cutOff(other.machine, machine, time.random.unit() * AWAY_MS);
      },
      MAX_UNDO_LOOKS,
    );
  }

  /** Whether all units of the open withdrawal are out of the segments. */
  #areOut(): boolean {
    const { truth } = this.#auditor;
    const open = truth?.ledger.find(({ action, units }) => action === 'withdraw' && units === 0);
    if (!truth || !open) return false;
    const out = readBooks(this.#world, this.#auditor.saleId, truth.segments).segments.reduce(
      (sum, s) => sum + (s?.withdrawn ?? 0),
      0,
    );
    return out >= Number(open.detail.wanted);
  }

  #resizeSlowly(): void {
    this.#change({ action: 'resize', segments: time.random.whole(2, 6) });
    const { machine } = time.random.pick(this.#world.redis);
    const ms = UNREACHABLE_LEAST_MS + time.random.unit() * UNREACHABLE_MS;
    const isDrafting = () => this.#world.redis.some(({ redis }) => [...redis.data.keys()].some(isDraft));
    when(isDrafting, () => {
      const cutOff = () => {
        for (const node of this.#nodes) this.#cutOff(node.machine, machine, ms);
        if (this.#scenario.dealings.setsClockBack) this.#setClockBack();
      };
      time.after(time.random.unit() * DRAFTING_MS, cutOff, WORLD);
    });
  }

  #setClockBack(): void {
    const { machine } = this.#world.postgres;
    this.#auditor.trace(`* the clock of ${machine.name} is set back by ${SET_BACK_MS} ms`);
    machine.skewMs -= SET_BACK_MS;
  }

  #cutOff(client: Machine, server: Machine, ms: number): void {
    const between = [...network.links].filter((link) => link.client === client && link.server === server);
    this.#auditor.trace(`* nothing passes between ${client.name} and ${server.name} for ${ms.toFixed(0)} ms`);
    for (const link of between) link.hang(ms);
  }

  /** @param node if it is down, any running node is used; if there is none, the change is made later */
  #change(change: SaleChange, node?: SimNode): void {
    const running = node?.running ? node : this.#nodes.find((each) => each.running);
    if (running) {
      this.#lastChangeAt = time.now;
      changeSale(running, change, this.#auditor);
      return;
    }
    this.#changeLater(NOBODY_THERE_MS, change, node);
  }

  #changeLater(ms: number, change: SaleChange, node?: SimNode): void {
    const make = () => {
      this.#waiting--;
      this.#change(change, node);
    };
    this.#waiting++;
    time.after(ms, make, WORLD);
  }
}

/** Makes a change. One that fails because of the weather is not repeated: sync must complete it. */
export function changeSale(node: SimNode, change: SaleChange, auditor: SaleAuditor): void {
  // If the sale is deleted meanwhile, the next one with its id has a ledger of its own.
  const { ledger } = auditor;
  const reason = ledger.asked(change);
  atNode(node, JSON.stringify(change), auditor, async ({ service }) => {
    try {
      const end = await service.change(auditor.saleId, change, { actor: 'sim', reason });
      ledger.done(reason);
      return end;
    } catch (error) {
      ledger.failed(reason, (error as { code?: string }).code);
      throw error;
    }
  });
}

/** Like a change, an erasure is completed by sync if its node dies, or it was not asked for. */
export function eraseBuyer(
  node: SimNode,
  wish: { readonly buyerId: string; readonly running: boolean },
  auditor: SaleAuditor,
): void {
  atNode(node, `erase ${JSON.stringify(wish)}`, auditor, ({ buyers }) =>
    buyers.erase(wish, { actor: 'sim', reason: 'gone' }),
  );
}

export function atNode(
  node: SimNode,
  what: string,
  auditor: SaleAuditor,
  work: (running: NonNullable<SimNode['running']>) => Promise<unknown>,
): void {
  auditor.trace(`${node.name} is to ${what}`);
  time.after(
    0,
    () => {
      const { running } = node;
      if (!running) return;
      work(running).then(
        (end) => auditor.trace(`${node.name} did ${what}: ${JSON.stringify(end)}`),
        (error) => {
          auditor.trace(`${node.name} could not ${what}: ${error}`);
          if (!isOfTheStores(error)) auditor.fail(`${node.name} failed to ${what}: ${error.stack}`);
        },
      );
    },
    node.machine,
  );
}
