/**
 * The weather of a run: which process dies when, what is lost, which connections hang, whose clock jumps. Then the
 * calm after it.
 */
import type { Auditor } from '../audit/auditor.ts';
import { readBooks } from '../audit/books.ts';
import { type Link, network } from '../machines/network.ts';
import type { SimNode } from '../machines/sim-node.ts';
import { type Machine, time, WORLD } from '../machines/virtual-time.ts';
import type { World } from '../machines/world.ts';
import type { Scenario } from '../plan/scenario.ts';
import { isMoment, when } from './moments.ts';

const SYNC_EVERY_MS = 150;
const DOWN_MS = 500;
const HANG_MS = 700;
const DEAF_MS = 1_200;
const JUMP_MS = 3_000;
const SETBACK_LEAST_MS = 10;
const SETBACK_MS = 150;
const RECORD_LOSS_MS = 10;
const UNFREEZE_MS = 20;
/** So that buyers come while a sale is loaded. */
const SLOW_LOAD = { slow: 0.5, slowMs: 300 };
/** Looks at a moment, twice in a millisecond: more than a run has. */
const ALL_LOOKS = 40_000;

export class Storm {
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #nodes: readonly SimNode[];
  readonly #auditor: Auditor;
  readonly #hanging = new Set<Link>();
  #isOver = false;

  constructor(scenario: Scenario, world: World, nodes: readonly SimNode[], auditor: Auditor) {
    this.#scenario = scenario;
    this.#world = world;
    this.#nodes = nodes;
    this.#auditor = auditor;
  }

  begin(): void {
    const { weather } = this.#scenario;
    const { cut, slow, slowMs, cutPostgres, lostMessages, lateLinks, lateLinkMs } = weather;
    const faults = { cut, slow, slowMs, cutPostgres, lostMessages, lateLinks, lateLinkMs };
    Object.assign(network.faults, faults);
    this.#sync();
    this.#sometime(weather.nodeDeaths, () => this.#killNode());
    this.#sometime(weather.redisDeaths, () => this.#killRedis());
    this.#sometime(weather.isEmptied ? 1 : 0, () => this.#empty());
    this.#sometime(weather.postgresDeaths, () => this.#killPostgres());
    this.#sometime(weather.hangs, () => this.#hang());
    this.#sometime(weather.jumps, () => this.#jump());
    this.#sometime(weather.lockBreaks, () => this.#breakLocks());
    this.#sometime(weather.setbacks, () => this.#setBack());
    this.#sometime(weather.takeLosses ?? 0, () => this.#loseTaken());
    this.#sometime(weather.recordLosses, () => this.#loseRecords());
    this.#unfreeze(weather.unfreezes);
    this.#sometime(weather.deafness, () => this.#deafen());
    if (weather.drags > 0 || weather.dragsTakes) this.#drag();
    for (const moment of weather.allDieAt) {
      when(
        () => this.#isOver || this.#auditor.sales.some((sale) => isMoment(moment, sale, this.#world)),
        () => {
          if (this.#isOver) return;
          for (const node of this.#nodes) this.#killNode(node);
        },
      );
    }
  }

  /** Ends all faults; dead processes come back. */
  end(): void {
    this.#isOver = true;
    network.calm();
    for (const link of this.#hanging) link.break('read ECONNRESET');
    const { redis, postgres } = this.#world;
    for (const server of redis) if (!server.machine.isAlive) server.start();
    if (!postgres.machine.isAlive) postgres.start();
    for (const node of this.#nodes) if (!node.isAlive) node.start();
  }

  #sometime(times: number, happens: () => void): void {
    for (let i = 0; i < times; i++) {
      const at = time.random.unit() * this.#scenario.lastsMs;
      time.after(at, () => this.#isOver || happens(), WORLD);
    }
  }

  /** Syncs the file of each Redis server, at times that the seed decides. */
  #sync(): void {
    for (const server of this.#world.redis) {
      server.sync();
      const again = () => {
        server.sync();
        time.after(time.random.unit() * SYNC_EVERY_MS * 2, again, WORLD);
      };
      time.after(time.random.unit() * SYNC_EVERY_MS, again, WORLD);
    }
  }

  #note(what: string): void {
    this.#auditor.trace(`* ${what}`);
  }

  #killNode(node = time.random.pick(this.#nodes)): void {
    if (!node.isAlive) return;
    this.#note(`${node.name} dies`);
    this.#auditor.nodesDied++;
    node.crash();
    this.#later(() => node.isAlive || node.start());
  }

  #killRedis(): void {
    const server = time.random.pick(this.#world.redis);
    if (!server.machine.isAlive) return;
    const hasLost = server.die({ losing: this.#scenario.weather.isLossy });
    this.#note(`${server.machine.name} dies${hasLost ? ', and loses what was not synced' : ''}`);
    if (hasLost) this.#auditor.lost();
    this.#later(() => server.machine.isAlive || server.start());
  }

  #empty(): void {
    const server = time.random.pick(this.#world.redis);
    this.#note(`${server.machine.name} is emptied`);
    server.empty();
    this.#auditor.lost();
  }

  #killPostgres(): void {
    const { postgres } = this.#world;
    if (!postgres.machine.isAlive) return;
    this.#note('postgres dies');
    postgres.die();
    this.#world.losePresence();
    for (const { queue } of this.#auditor.sales) queue?.presenceBegins();
    this.#later(() => postgres.machine.isAlive || postgres.start());
  }

  #breakLocks(): void {
    this.#note('the connections that hold locks break');
    this.#world.postgres.breakLocks();
  }

  /** Redis loses what it took while Postgres was away. The nodes that took it are alive, and go on at once. */
  #setBack(): void {
    if (!this.#world.postgres.machine.isAlive) return;
    this.#killPostgres();
    if (this.#scenario.weather.losesUnread) {
      this.#loseTaken();
      return;
    }
    time.after(SETBACK_LEAST_MS + time.random.unit() * SETBACK_MS, () => this.#loseNewest(), WORLD);
  }

  #loseNewest(): void {
    const server = time.random.pick(this.#world.redis);
    if (this.#isOver || !server.machine.isAlive) return;
    const hasLost = server.die({ losing: true });
    this.#note(`${server.machine.name} is set back${hasLost ? ', and has lost writes' : ''}`);
    if (hasLost) this.#auditor.lost();
    server.start();
  }

  /** Redis loses the next units that are taken, and what was written after them. */
  #loseTaken(): void {
    for (const server of this.#world.redis) server.sync();
    const before = this.#unitsTaken();
    when(
      () => this.#unitsTaken() > before,
      () => time.after(time.random.unit() * SETBACK_LEAST_MS, () => this.#loseNewest(), WORLD),
    );
  }

  /** The file of a server was synced just before a rebuild loaded records into its segments. Then the server dies. */
  #loseRecords(): void {
    const server = time.random.pick(this.#world.redis);
    const lose = () => {
      if (this.#isOver || !server.machine.isAlive || !server.die({ losing: true })) return;
      this.#note(`${server.machine.name} loses the records of a rebuild`);
      this.#auditor.lost();
      server.start();
    };
    when(
      () => server.segmentsLoading.some(({ hasAll }) => !hasAll),
      () => {
        server.sync();
        when(
          () => server.segmentsLoading.some(({ hasAll }) => hasAll),
          () => time.after(time.random.unit() * RECORD_LOSS_MS, lose, WORLD),
        );
      },
    );
  }

  /**
   * A server comes back as it was just before a rebuild froze its segments, when the rebuild has begun to load. All orders that it
   * had are in Postgres by then. If it has taken one since it was copied, it stays as it is.
   */
  #unfreeze(times: number): void {
    if (times === 0) return;
    const { redis } = this.#world;
    const server = time.random.pick(redis);
    let [copy, writes] = [server.copy(), server.writes];
    const isFrozen = () => {
      if (server.isFrozen) return true;
      if (server.writes !== writes) [copy, writes] = [server.copy(), server.writes];
      return false;
    };
    const goBack = () => {
      if (this.#isOver || !server.machine.isAlive) return;
      server.die({ losing: false });
      server.restore(copy);
      this.#note(`${server.machine.name} goes back to before its segments were frozen`);
      this.#auditor.wentBack();
      server.start();
    };
    const isLoading = () => redis.some(({ segmentsLoading }) => segmentsLoading.length > 0);
    const loading = (hasTaken: boolean) => {
      Object.assign(network.faults, SLOW_LOAD);
      if (!hasTaken) time.after(time.random.unit() * UNFREEZE_MS, goBack, WORLD);
      orOver(() => !isLoading(), loaded);
    };
    const loaded = () => {
      const { slow, slowMs } = this.#scenario.weather;
      Object.assign(network.faults, { slow, slowMs });
      this.#unfreeze(times - 1);
    };
    const orOver = (isSo: () => boolean, act: () => void) =>
      when(
        () => this.#isOver || isSo(),
        () => this.#isOver || act(),
        ALL_LOOKS,
      );
    orOver(isFrozen, () => {
      const hasTaken = server.hasTakenSince(copy);
      orOver(isLoading, () => loading(hasTaken));
    });
  }

  #unitsTaken(): number {
    const all = this.#auditor.sales.flatMap(
      ({ saleId }) => readBooks(this.#world, saleId, this.#scenario.segments).segments,
    );
    return all.reduce((sum, segment) => sum + (segment?.taken ?? 0), 0);
  }

  #hang(): void {
    const links = [...network.links];
    if (links.length === 0) return;
    const node = time.random.pick(links).client;
    const ofNode = links.filter(({ client }) => client === node);
    const hanging = time.random.chance(0.5) ? ofNode : [time.random.pick(ofNode)];
    this.#note(`${hanging.length} connections of ${node.name} hang`);
    for (const link of hanging) {
      link.hang(time.random.unit() * HANG_MS);
      this.#hanging.add(link);
    }
  }

  /**
   * Some connections of a node to Redis hang, so that it may sell without hearing messages, or hear them without
   * selling.
   */
  #deafen(): void {
    const node = time.random.pick(this.#nodes);
    const deaf = this.#toRedis((link) => link.client === node.machine && time.random.chance(0.5));
    this.#note(`${deaf.length} connections of ${node.name} to Redis hang`);
    for (const link of deaf) {
      link.hang(time.random.unit() * DEAF_MS);
      this.#hanging.add(link);
    }
  }

  /** Answers over some connections to Redis are always late, so that others overtake them. */
  #drag(): void {
    const { drags, dragMs, dragsTakes } = this.#scenario.weather;
    const isDragged = (link: Link) =>
      dragsTakes ? this.#nodes.some((node) => node.isOfEngines(link)) : time.random.chance(drags);
    for (const link of this.#toRedis(isDragged)) link.drag(dragMs);
  }

  #toRedis(which: (link: Link) => boolean): Link[] {
    return [...network.links].filter(({ server }) => server !== this.#world.postgres.machine).filter(which);
  }

  #jump(): void {
    const machines: Machine[] = [
      ...this.#nodes.map(({ machine }) => machine),
      ...this.#world.redis.map(({ machine }) => machine),
      this.#world.postgres.machine,
    ];
    const machine = time.random.pick(machines);
    const by = (time.random.unit() * 2 - 1) * (this.#scenario.weather.jumpMs ?? JUMP_MS);
    this.#note(`the clock of ${machine.name} jumps by ${by.toFixed(0)} ms`);
    machine.skewMs += by;
    if (by < 0 && this.#world.redis.some((server) => server.machine === machine))
      this.#auditor.redisSetBack();
  }

  #later(happens: () => void): void {
    time.after(10 + time.random.unit() * DOWN_MS, happens, WORLD);
  }
}
