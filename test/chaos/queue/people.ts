/**
 * People that ask for places over HTTP and ask again until they are told an end, over a bounded number of connections. The person
 * that is due next asks next, at either node. What a person means to do is drawn beforehand:
 *
 *   keeps    accepts the offer
 *   cancels  accepts, and cancels the order some seconds later
 *   lapses   does not accept, and asks until it is told so
 *   leaves   leaves after some answers, whether it waits or has an offer
 *   goes     asks no more after an answer or two. It comes back when the sale is closed
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { type Random, random } from '../../support/random.ts';
import type { Progress } from '../schedule.ts';
import { FINAL, type Memory, newMemory, type ToldState } from './memory.ts';

/** A person stops waiting for an answer after this time, which is longer than a node's own deadline. */
const ANSWER_LIMIT_MS = 3_000;
const RETRY_MS = 250;
/** From one answer to the next question. With more people than the connections can serve it is longer. */
const POLL_MS = { least: 1_500, most: 3_000 };
const THINKING_MS = { least: 50, most: 1_500 };
const ENJOYING_MS = { least: 500, most: 12_000 };
/** How often those who leave are answered before. */
const PATIENCE = { least: 1, most: 4 };
/** The same of those who go: so few that they are absent when their turn comes. */
const SHORT_PATIENCE = { least: 0, most: 1 };
const REPEATED = 0.2;
const WITHOUT_TOKEN = 0.2;
const IDLE_MS = 10;

type Plan = 'keeps' | 'cancels' | 'lapses' | 'leaves' | 'goes';
/**
 * A number below 100 is drawn for each person: the first bound above it decides the plan. More than half of the offers give
 * their units back, so that most faults find units that are on their way.
 */
const PLANS: readonly (readonly [Plan, number])[] = [
  ['keeps', 40],
  ['cancels', 73],
  ['lapses', 81],
  ['leaves', 88],
  ['goes', 100],
];

type Step = 'ask' | 'poll' | 'accept' | 'leave' | 'cancel';

interface Person {
  readonly memory: Memory;
  readonly plan: Plan;
  step: Step;
  dueMs: number;
  patience: number;
  token: string | undefined;
  /** It asks no more. */
  isGone: boolean;
  /** The order that it accepts or cancels. */
  orderId: string;
}

export interface PeopleOptions {
  readonly doors: readonly string[];
  readonly saleId: string;
  readonly people: number;
  readonly connections: number;
  readonly seed: number;
}

/** What an answer says of a place, as far as it matters here. */
interface ToldPlace {
  readonly number: number;
  readonly state: ToldState;
  readonly rank?: number;
  readonly placeToken?: string;
  readonly offer?: { readonly orderId: string; readonly token: string; readonly expiresAt: string };
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the checker judges what it says.
  readonly body: any;
}

export class People implements Progress, AsyncDisposable {
  readonly memories: readonly Memory[];
  readonly servedAtMs: number[] = [];
  /** Requests without an answer. */
  unanswered = 0;
  readonly #options: PeopleOptions;
  readonly #random: Random;
  readonly #pools: readonly Pool[];
  readonly #committedAtMs: number[] = [];
  readonly #people: readonly Person[];
  /** Those that have something else to do than ask, which is more urgent. */
  readonly #soon: Person[] = [];
  /** Those that mean to ask later. */
  #line: Person[] = [];
  /** Those that ask next. */
  #due: Person[] = [];
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  readonly #running: Promise<void>[];
  #isClosed = false;
  #stopped = false;
  #turn = 0;

  constructor(options: PeopleOptions) {
    this.#options = options;
    this.#random = random(options.seed);
    const limits = { headersTimeout: ANSWER_LIMIT_MS, bodyTimeout: ANSWER_LIMIT_MS };
    const connections = Math.ceil(options.connections / options.doors.length);
    this.#pools = options.doors.map(
      (url) => new Pool(url, { ...limits, connections, connect: { timeout: ANSWER_LIMIT_MS } }),
    );
    this.#people = Array.from({ length: options.people }, (_, number) => this.#person(number));
    this.memories = this.#people.map(({ memory }) => memory);
    this.#line.push(...this.#people);
    this.#running = Array.from({ length: options.connections }, () => this.#work());
  }

  firstCommittedMs(afterMs: number): number | undefined {
    return this.#committedAtMs.find((ms) => ms > afterMs);
  }

  /** How many were told a place. */
  get placed(): number {
    return this.#people.filter(({ memory }) => memory.told.length > 0).length;
  }

  get accepted(): number {
    return this.#people.reduce(
      (sum, { memory }) => sum + memory.acceptances.filter(({ outcome }) => outcome === 'accepted').length,
      0,
    );
  }

  /** Whether nobody means to do anything but ask how its place stands. */
  get areOnlyAsking(): boolean {
    return this.#people.every(({ step }) => step === 'poll');
  }

  /** The sale is closed: everybody asks until it is told an end, also those who went. @returns whether all were */
  async hearTheEnd(limitMs: number): Promise<boolean> {
    this.#isClosed = true;
    const missing = () => this.#people.filter(({ memory, step }) => step !== 'poll' || !hasEnded(memory));
    for (const person of this.#people.filter(({ isGone }) => isGone)) this.#again(person, 0);
    const deadline = performance.now() + limitMs;
    while (missing().length > 0 && performance.now() < deadline) await delay(50);
    return missing().length === 0;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await Promise.all(this.#pools.map((pool) => pool.destroy()));
  }

  #person(number: number): Person {
    const lot = this.#random.whole(0, 99);
    const [plan] = PLANS.find(([, below]) => lot < below)!;
    return {
      memory: newMemory(`person-${number}`),
      plan,
      step: 'ask',
      dueMs: 0,
      patience: this.#between(plan === 'goes' ? SHORT_PATIENCE : PATIENCE),
      token: undefined,
      isGone: false,
      orderId: '',
    };
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      const person = this.#next();
      if (!person) {
        await delay(IDLE_MS);
        continue;
      }
      await this.#act(person);
    }
  }

  #next(): Person | undefined {
    const now = performance.now();
    const at = this.#soon.findIndex(({ dueMs }) => dueMs <= now);
    if (at >= 0) return this.#soon.splice(at, 1)[0];
    if (this.#due.length === 0 && now - this.#lookedAtMs >= IDLE_MS) {
      this.#lookedAtMs = now;
      this.#due = this.#line.filter(({ dueMs }) => dueMs <= now);
      this.#line = this.#line.filter(({ dueMs }) => dueMs > now);
    }
    return this.#due.shift();
  }

  #again(person: Person, inMs: number): void {
    person.dueMs = performance.now() + inMs;
    (person.step === 'poll' || person.step === 'ask' ? this.#line : this.#soon).push(person);
  }

  #between({ least, most }: { least: number; most: number }): number {
    return this.#random.whole(least, most);
  }

  async #act(person: Person): Promise<void> {
    const { step } = person;
    if (step === 'ask') await this.#askForPlace(person);
    else if (step === 'poll') await this.#poll(person);
    else if (step === 'accept') await this.#accept(person);
    else if (step === 'leave') await this.#leave(person);
    else await this.#cancel(person);
  }

  async #askForPlace(person: Person): Promise<void> {
    const askedAtMs = Date.now();
    const answer = await this.#send(person, 'POST', this.#placePath, {}, '{}');
    if (answer?.status !== 200) {
      this.#again(person, RETRY_MS);
      return;
    }
    this.#committed();
    this.#hear(person, askedAtMs, answer.body);
    // A place is found again by the same question. So some ask twice.
    if (person.plan === 'keeps' && !hasEnded(person.memory) && this.#random.chance(REPEATED)) {
      this.#again(person, RETRY_MS);
      return;
    }
    person.step = 'poll';
    this.#decide(person);
  }

  async #poll(person: Person): Promise<void> {
    const askedAtMs = Date.now();
    const token = this.#random.chance(WITHOUT_TOKEN) ? undefined : person.token;
    const answer = await this.#send(
      person,
      'GET',
      this.#placePath,
      token === undefined ? {} : { 'place-token': token },
    );
    if (answer?.status !== 200) {
      this.#again(person, answer?.body?.code === 'no_place' ? POLL_MS.least : RETRY_MS);
      return;
    }
    if (token === undefined) this.#committed();
    this.#hear(person, askedAtMs, answer.body);
    this.#decide(person);
  }

  #hear(person: Person, askedAtMs: number, body: ToldPlace): void {
    const { memory } = person;
    const { number, state, rank, offer, placeToken } = body;
    person.token = placeToken ?? person.token;
    memory.heardAtMs.push(askedAtMs);
    const last = memory.told.at(-1);
    if (last?.number !== number || last.state !== state || last.rank !== rank)
      memory.told.push({ askedAtMs, number, state, rank });
    if (state === 'offered' && offer && !memory.offers.has(offer.orderId)) {
      const { orderId, token, expiresAt } = offer;
      memory.offers.set(orderId, { number, orderId, token, untilMs: Date.parse(expiresAt) });
    }
  }

  /** What the person does next, after it was told how its place stands. */
  #decide(person: Person): void {
    const { memory, plan } = person;
    const { state } = memory.told.at(-1)!;
    if (FINAL.has(state)) return;
    person.patience--;
    if (!this.#isClosed && person.patience < 0 && plan === 'goes') {
      person.isGone = true;
      return;
    }
    if (!this.#isClosed && person.patience < 0 && plan === 'leaves') {
      person.step = 'leave';
      this.#again(person, 0);
      return;
    }
    if (state === 'offered' && (plan === 'keeps' || plan === 'cancels')) {
      person.step = 'accept';
      person.orderId = [...memory.offers.keys()].at(-1)!;
      this.#again(person, this.#between(THINKING_MS));
      return;
    }
    this.#again(person, this.#between(POLL_MS));
  }

  async #accept(person: Person): Promise<void> {
    const { memory, orderId } = person;
    const { token } = memory.offers.get(orderId)!;
    const answer = await this.#send(
      person,
      'POST',
      `/v1/sales/${this.#options.saleId}/orders`,
      { 'purchase-token': token },
      '{"quantity":1}',
    );
    const answeredAtMs = Date.now();
    const isTooLate = answer?.body?.code === 'offer_ended';
    if (answer?.status !== 201 && !isTooLate) {
      this.#again(person, RETRY_MS);
      return;
    }
    this.#committed();
    memory.acceptances.push({ orderId, answeredAtMs, outcome: isTooLate ? 'too late' : 'accepted' });
    const cancels = !isTooLate && person.plan === 'cancels';
    person.step = cancels ? 'cancel' : 'poll';
    this.#again(person, cancels ? this.#between(ENJOYING_MS) : 0);
  }

  async #leave(person: Person): Promise<void> {
    person.memory.askedToLeave = true;
    this.#changed(person, await this.#send(person, 'DELETE', this.#placePath, {}));
  }

  async #cancel(person: Person): Promise<void> {
    const { memory, orderId } = person;
    memory.cancelled.add(orderId);
    this.#changed(person, await this.#send(person, 'POST', `/v1/orders/${orderId}/cancel`, {}, '{}'));
  }

  /** Asks how the place stands, or for the same change again if it may not have happened. */
  #changed(person: Person, answer: Answer | undefined): void {
    if (!answer || answer.status >= 500) {
      this.#again(person, RETRY_MS);
      return;
    }
    this.#committed();
    person.step = 'poll';
    this.#again(person, 0);
  }

  get #placePath(): string {
    return `/v1/sales/${this.#options.saleId}/place`;
  }

  #committed(): void {
    this.#committedAtMs.push(performance.now());
  }

  /** @returns `undefined` if no answer came */
  async #send(
    { memory }: Person,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    more: Record<string, string>,
    body?: string,
  ): Promise<Answer | undefined> {
    const pool = this.#pools[this.#turn++ % this.#pools.length]!;
    try {
      const headers = { 'x-buyer-id': memory.buyerId, ...more };
      const answer = await pool.request({ method, path, headers, ...(body !== undefined && { body }) });
      const said = (await answer.body.json().catch(() => undefined)) as Answer['body'];
      if (answer.statusCode < 300) this.servedAtMs.push(performance.now());
      return { status: answer.statusCode, body: said };
    } catch {
      this.unanswered++;
      return undefined;
    }
  }
}

function hasEnded({ told }: Memory): boolean {
  const last = told.at(-1);
  return last !== undefined && FINAL.has(last.state);
}
