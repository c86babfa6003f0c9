/**
 * Replaces the process's time, timers and randomness. Time passes only from event to event. Each event runs with all its
 * consequences (microtasks, `nextTick`) before the next one begins, so everything between two events belongs to one simulated
 * machine, `here`. Therefore each machine can have a clock of its own, and everything that a machine has begun ends when it
 * dies.
 *
 * Must be installed before anything of the product is imported, because some modules read a clock when they are loaded.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';
import { type Random, random } from '../../support/random.ts';

/** A machine of the simulation. What it has begun is lost when it dies. */
export class Machine {
  readonly name: string;
  isAlive = true;
  /** How far its wall clock is ahead of the true time, in milliseconds. Its monotonic clock never jumps. */
  skewMs = 0;
  /** Until then its processes are stopped: whatever happens to it happens at that time, in the same order. */
  stalledUntil = 0;

  constructor(name: string) {
    this.name = name;
  }
}

interface Event {
  at: number;
  order: number;
  readonly machine: Machine;
  readonly run: () => void;
  cancelled: boolean;
}

const EPOCH_MS = Date.UTC(2026, 5, 1);
/** Timers fire up to this much late, as on a busy machine. */
const TIMER_LATE_MS = 1;
/**
 * Another copy of this module (session.ts) may have replaced the originals already, so they are kept under this
 * symbol.
 */
const REAL = Symbol.for('stockade.sim.real');
const globals = globalThis as unknown as Record<symbol, Real>;
interface Real {
  readonly setImmediate: typeof setImmediate;
  readonly Date: DateConstructor;
}
globals[REAL] ??= { setImmediate: globalThis.setImmediate, Date: globalThis.Date };
const real = globals[REAL];

export const WORLD = new Machine('world');

export class VirtualTime {
  now = 0;
  here: Machine = WORLD;
  random: Random = random(0);
  /** Set while code runs that may read the clock but must not set timers. */
  timersOff = false;
  /** Called with what an event throws, which would end the process of its machine. */
  failed: (error: unknown) => void = () => {};
  #heap: Event[] = [];
  #order = 0;

  begin(seed: number): void {
    this.now = 0;
    this.here = WORLD;
    this.random = random(seed);
    this.#heap = [];
    this.#order = 0;
  }

  get wallMs(): number {
    return EPOCH_MS + this.now + this.here.skewMs;
  }

  at(at: number, run: () => void, machine: Machine = this.here): Event {
    const event = { at, order: this.#order++, machine, run, cancelled: false };
    this.#push(event);
    return event;
  }

  after(ms: number, run: () => void, machine: Machine = this.here): Event {
    return this.at(this.now + ms, run, machine);
  }

  /** Resolves on this machine after this time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** Runs the next event with all its consequences. @returns false if there is none until the given time */
  async step(until: number): Promise<boolean> {
    const event = this.#heap[0];
    if (!event || event.at > until) {
      this.now = until;
      return false;
    }
    this.#pop();
    if (event.cancelled || !event.machine.isAlive) return true;
    if (event.machine.stalledUntil > event.at) {
      event.at = event.machine.stalledUntil;
      event.order = this.#order++;
      this.#push(event);
      return true;
    }
    this.now = event.at;
    this.here = event.machine;
    try {
      event.run();
    } catch (error) {
      this.failed(error);
    }
    await new Promise<void>((resolve) => real.setImmediate(resolve));
    this.here = WORLD;
    return true;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** The time of this process, which stands in for the globals. */
export const time = new VirtualTime();

type Callback = (...args: unknown[]) => void;

class Timer {
  readonly #run: Callback;
  readonly #args: unknown[];
  readonly #everyMs: number | undefined;
  readonly #ms: number;
  #event: Event | undefined;

  constructor(run: Callback, ms: number, args: unknown[], repeats: boolean) {
    this.#run = run;
    this.#args = args;
    this.#ms = Math.max(1, Number.isFinite(ms) ? ms : 1);
    this.#everyMs = repeats ? this.#ms : undefined;
    this.#arm();
  }

  #arm(): void {
    this.#event = time.after(this.#ms + time.random.unit() * TIMER_LATE_MS, () => {
      this.#event = undefined;
      if (this.#everyMs !== undefined) this.#arm();
      this.#run(...this.#args);
    });
  }

  close(): this {
    if (this.#event) this.#event.cancelled = true;
    this.#event = undefined;
    return this;
  }
  refresh(): this {
    this.close();
    this.#arm();
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
}

const NO_TIMER = { close() {}, ref() {}, unref() {}, refresh() {}, hasRef: () => false };

function timer(repeats: boolean) {
  return (run: Callback, ms = 1, ...args: unknown[]) =>
    time.timersOff ? NO_TIMER : new Timer(run, ms, args, repeats);
}

function clear(timer?: { close(): void }): void {
  timer?.close();
}

function delay(ms = 1, value?: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = () => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    };
    const waiting = new Timer(end, ms, [], false);
    const abort = () => {
      waiting.close();
      reject(signal!.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Random bytes from the seed. */
function bytes(length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => time.random.whole(0, 255)));
}

function uuid(): string {
  const hex = bytes(16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

class VirtualDate extends real.Date {
  constructor(...args: unknown[]) {
    super(...((args.length === 0 ? [time.wallMs] : args) as [number]));
  }
  static override now(): number {
    return Math.floor(time.wallMs);
  }
}

/** Cannot be undone: the process does nothing but simulate from then on. */
export function install(): void {
  Object.assign(globalThis, {
    setTimeout: timer(false),
    setInterval: timer(true),
    setImmediate: (run: Callback, ...args: unknown[]) => {
      const event = time.after(time.random.unit() * 0.01, () => run(...args));
      const close = () => {
        event.cancelled = true;
      };
      return { ...NO_TIMER, close };
    },
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
    Date: VirtualDate,
  });
  performance.now = () => time.now;
  const hrtime = () => [Math.floor(time.now / 1e3), Math.floor((time.now % 1e3) * 1e6)] as [number, number];
  process.hrtime = Object.assign(hrtime, { bigint: () => BigInt(Math.floor(time.now * 1e6)) });
  Math.random = () => time.random.unit();
  Object.assign(timersPromises, { setTimeout: delay });
  Object.assign(crypto, { randomBytes: bytes, randomUUID: uuid });
  syncBuiltinESMExports();
}
