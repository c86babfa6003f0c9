/**
 * The people of a queue: they come, alone or several in one batch, ask for their places, and accept their offers in time, late or
 * never. Some leave, some stop asking, and some come again.
 */
import type { OrderChange } from '../../../src/operations/order-operations.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import type { Place } from '../../../src/queue/place.ts';
import { givePlaces, leaveQueue, readPlaceOf } from '../../../src/queue/places.ts';
import { markAsked, markPresent } from '../../../src/queue/presence.ts';
import { BY } from '../../support/author.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import { isMoment, when } from '../faults/moments.ts';
import { isOfTheStores, type SimNode } from '../machines/sim-node.ts';
import { time, WORLD } from '../machines/virtual-time.ts';
import type { World } from '../machines/world.ts';
import type { Scenario } from '../plan/scenario.ts';
import type { QueuePlan } from './queue-plan.ts';

type Running = NonNullable<SimNode['running']>;

const ASK_MS = 300;
const RETRY_MS = 100;
/** People hurry so many milliseconds around the opening. */
const OPENS_MS = 200;
/** After this time without an answer, whoever asked asks again: the node has died, or hangs. */
const GIVE_UP_MS = 2_000;
const LATE_MS = 900;
const MAX_TIMES = 3;

/** What somebody does about an offer. */
type Reaction = 'at once' | 'in time' | 'late' | 'never' | 'decline';
const REACTIONS: readonly Reaction[] = ['at once', 'at once', 'in time', 'late', 'never', 'decline'];

interface Person {
  readonly name: string;
  readonly wants: number;
  /** Whether it asks for its place from time to time. */
  asks: boolean;
  times: number;
  /** The place that it was told of last. */
  number: number;
  /** The offer that it has reacted to. */
  reacted: string | undefined;
}

export class People {
  readonly #plan: QueuePlan;
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #nodes: readonly SimNode[];
  readonly #auditor: SaleAuditor;
  readonly #all = new Map<string, Person>();
  /** Whether everybody only asks from now on, and accepts at once. */
  isCalm = false;
  #isOver = false;

  constructor(
    plan: QueuePlan,
    scenario: Scenario,
    world: World,
    nodes: readonly SimNode[],
    auditor: SaleAuditor,
  ) {
    this.#plan = plan;
    this.#scenario = scenario;
    this.#world = world;
    this.#nodes = nodes;
    this.#auditor = auditor;
  }

  begin(): void {
    const { random } = time;
    const { people, wants } = this.#plan;
    const names = Array.from({ length: people }, (_, i) => `q${i}`);
    while (names.length > 0) {
      const group = names.splice(0, random.whole(1, 4));
      const at = random.chance(0.5) ? this.#rush() : random.unit() * this.#scenario.lastsMs * 0.8;
      time.after(at, () => this.come(group.map((name) => this.#person(name, random.whole(1, wants)))), WORLD);
    }
    this.#leaveEarly();
  }

  /** Half of the people come at the beginning; where there is a lobby, some of these when it ends. */
  #rush(): number {
    const { random } = time;
    const { opensAfterMs } = this.#plan;
    if (opensAfterMs === undefined || random.chance(0.5)) return random.unit() * 60;
    return opensAfterMs + (random.unit() - 0.5) * OPENS_MS;
  }

  /** Nobody asks for a place any more. */
  end(): void {
    this.#isOver = true;
  }

  newcomers(names: readonly string[]): void {
    this.come(names.map((name) => this.#person(name, 1)));
  }

  #person(name: string, wants: number): Person {
    const known = this.#all.get(name);
    if (known) return known;
    const person = { name, wants, asks: true, times: 0, number: 0, reacted: undefined };
    this.#all.set(name, person);
    return person;
  }

  /** A batch of people asks for places, until there is an answer. */
  come(group: readonly Person[]): void {
    const again = () => this.come(group);
    for (const person of group) person.times++;
    const wishes = group.map(({ name: buyerId, wants: quantity }) => ({ buyerId, quantity }));
    this.#ask(
      `give places to ${group.map(({ name }) => name)}`,
      ({ db }) => givePlaces(db, this.#auditor.saleId, wishes),
      (given) => {
        for (const person of group) {
          const place = given.get(person.name);
          if (place) this.#told(person, place, true);
        }
      },
      again,
    );
  }

  #told(person: Person, place: Place, isFirst = false): void {
    const { random } = time;
    const { vanishes } = this.#plan;
    this.#checkTold(person, place);
    if (isFirst && person.number !== place.number) {
      person.number = place.number;
      person.asks = true;
      if (random.chance(this.isCalm ? 0 : vanishes))
        time.after(random.unit() * 3_000, () => this.#vanish(person), WORLD);
      this.#look(person);
    }
    if (place.state === 'offered' && place.orderId !== person.reacted) this.#react(person, place);
    const isEnd = place.state !== 'waiting' && place.state !== 'offered';
    if (isEnd && isFirst === false) this.#ended(person, place);
  }

  /** Places are told as they are, or have been. */
  #checkTold({ name }: Person, { number, buyerId, orderId }: Place): void {
    const place = this.#auditor.queue!.truth?.places[number - 1];
    if (buyerId !== name || (place && place.buyer !== name))
      this.#auditor.fail(`Q6: ${name} is told of place ${number}, which is ${place?.buyer}'s`);
    if (place && orderId !== undefined && place.order !== orderId)
      this.#auditor.fail(`Q1: ${name} is told of the offer ${orderId}: ${JSON.stringify(place)}`);
  }

  #vanish(person: Person): void {
    this.#auditor.trace(`${person.name} asks no more`);
    person.asks = false;
  }

  /** Asks for its place from time to time, and is present by that. */
  #look(person: Person): void {
    const { number } = person;
    const goesOn = () => person.asks && person.number === number && !this.#isOver;
    const { saleId } = this.#auditor;
    const { presenceSeconds } = this.#plan;
    const again = () => time.after(ASK_MS * (0.5 + time.random.unit()), look, WORLD);
    const look = () => {
      if (!goesOn()) return;
      const since = time.now;
      const read = async ({ db }: Running) => {
        await markAsked(db, saleId);
        if (presenceSeconds > 0) await markPresent(db, saleId, presenceSeconds, [number]);
        return readPlaceOf(db, saleId, person.name);
      };
      const told = (place: Place | undefined) => {
        if (presenceSeconds > 0) this.#auditor.queue!.marked(number, since);
        if (!place) this.#auditor.fail(`Q4: place ${number} of ${person.name} is gone`);
        this.#told(person, place);
        again();
      };
      this.#ask(`show the place of ${person.name}`, read, told, again);
    };
    again();
  }

  #react(person: Person, { orderId, offeredUntil, offeredUnits }: Place): void {
    const { random } = time;
    person.reacted = orderId;
    const leftMs = Math.max(0, offeredUntil!.getTime() - Date.now());
    const reaction = this.isCalm ? 'at once' : random.pick(REACTIONS);
    const accept = (ms: number) => time.after(ms, () => this.#accept(person, orderId!, offeredUnits!), WORLD);
    if (reaction === 'at once') accept(random.unit() * 100);
    else if (reaction === 'in time') accept(random.unit() * Math.min(leftMs, 2_000));
    else if (reaction === 'late') accept(Math.min(leftMs, 4_000) + (random.unit() - 0.3) * LATE_MS);
    else if (reaction === 'decline') time.after(random.unit() * 500, () => this.leave(person.name), WORLD);
  }

  #accept(person: Person, orderId: string, quantity: number): void {
    const { name: buyerId } = person;
    const { queue } = this.#auditor;
    const asked = time.now;
    const again = () => this.#accept(person, orderId, quantity);
    this.#ask(
      `accept ${orderId} for ${buyerId}`,
      ({ db }) => acceptOffer(db, { orderId, buyerId, quantity }),
      (end) => {
        const order = queue!.truth!.orders[orderId];
        const told = `${buyerId} accepts ${orderId} and is told ${end?.verdict}: ${JSON.stringify(order)}`;
        if (end?.verdict === 'done') return this.#bought(orderId, buyerId, quantity);
        if (end?.verdict === 'paused' && queue!.wasPaused(asked)) {
          time.after(RETRY_MS, again, WORLD);
          return;
        }
        const isOver =
          order?.status !== 'unpaid' || order.until! <= queue!.latest + 1 || queue!.wasPaused(asked);
        if (end?.verdict !== 'late' || !isOver) this.#auditor.fail(`Q1: ${told}`);
      },
      again,
    );
  }

  #bought(orderId: string, buyerId: string, units: number): void {
    const { random } = time;
    this.#auditor.promises.push({ orderId, buyerId, units, code: 'committed' });
    if (random.chance(0.5)) return;
    const change: OrderChange = random.chance(0.5) ? { kind: 'cancel' } : { kind: 'pay', payType: 'card' };
    const { kind } = change;
    if (kind === 'cancel') this.#auditor.askedBack.add(orderId);
    const act = () =>
      this.#ask(
        `${kind} ${orderId}`,
        ({ orders }) => orders.changeOrder(orderId, change, BY),
        (outcome) => this.#auditor.orders.told(orderId, kind, outcome),
      );
    time.after(random.unit() * 1_000, act, WORLD);
  }

  /** Some come again. */
  #ended(person: Person, { number, state }: Place): void {
    if (person.number !== number) return;
    person.asks = false;
    const { random } = time;
    const mayBuyMore = state !== 'bought' || this.#scenario.limit > 1;
    if (this.#isOver || this.isCalm || !mayBuyMore || person.times >= MAX_TIMES || random.chance(0.4)) return;
    time.after(random.unit() * 300, () => this.come([person]), WORLD);
  }

  leave(name: string, andComesAgain = false): void {
    const { saleId, queue } = this.#auditor;
    queue!.leaves(name);
    this.#ask(
      `leave for ${name}`,
      ({ db }) => leaveQueue(db, saleId, name),
      () => {
        const person = this.#all.get(name);
        if (person && andComesAgain && !this.#isOver && !this.isCalm) this.come([person]);
      },
    );
  }

  /** Whoever waits longest leaves just when a unit is taken. */
  #leaveEarly(): void {
    const { leavesEarly } = this.#plan;
    if (leavesEarly === 0 || this.#isOver || this.isCalm) return;
    const go = () => {
      const first = this.#auditor.queue!.truth?.places.find(({ state }) => state === 'waiting');
      if (first && !this.isCalm && time.random.chance(leavesEarly))
        this.leave(first.buyer, time.random.chance(0.5));
      time.after(50, () => this.#leaveEarly(), WORLD);
    };
    when(() => this.isCalm || isMoment('backlog', this.#auditor, this.#world), go);
  }

  /** @param told called with the answer @param failed called if there is none, or an error of the stores; default: nothing */
  #ask<T>(
    what: string,
    work: (running: Running) => Promise<T>,
    told: (answer: T) => void,
    failed: () => void = () => {},
  ): void {
    const auditor = this.#auditor;
    if (this.#isOver) return;
    const up = this.#nodes.filter(({ running }) => running);
    let isOpen = true;
    const end = (act: () => void) => {
      if (!isOpen) return;
      isOpen = false;
      time.after(0, () => this.#isOver || act(), WORLD);
    };
    const fail = () => end(() => void time.after(RETRY_MS, failed, WORLD));
    if (up.length === 0) {
      fail();
      return;
    }
    const node = time.random.pick(up);
    auditor.trace(`${node.name} is to ${what}`);
    time.after(GIVE_UP_MS, fail, WORLD);
    const ask = () => {
      const { running } = node;
      if (!running) {
        fail();
        return;
      }
      work(running).then(
        (answer) => {
          auditor.trace(`${node.name} did ${what}: ${describe(answer)}`);
          end(() => told(answer));
        },
        (error) => {
          auditor.trace(`${node.name} could not ${what}: ${error}`);
          if (!isOfTheStores(error)) auditor.fail(`${node.name} failed to ${what}: ${error.stack}`);
          fail();
        },
      );
    };
    time.after(0, ask, node.machine);
  }
}

function describe(answer: unknown): string {
  return JSON.stringify(answer instanceof Map ? [...answer.values()] : answer);
}
