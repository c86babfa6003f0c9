/**
 * Pictures for the consoles that are open at this node, one a second.
 *
 *   no console is open ──watch──> every second, each part that an open console shows is read once ──the last closes──> nothing
 *
 * Goals: a console costs what it shows, and consoles that show the same share one reading. A part whose reading takes longer
 * is not read again meanwhile; pictures show its last value with its age. A picture is made when its reader has room for it,
 * so nothing is queued for a slow reader.
 *
 * Non-goal: history. A console remembers what it has seen.
 */
import pLimit from 'p-limit';
import { rest } from '../../lib/rest.ts';
import {
  type ConsoleOperations,
  type ConsolePicture,
  type ConsoleQuery,
  MAX_CONSOLES,
  TooManyConsoles,
} from '../../operations/console/console-operations.ts';
import type { NodeSources } from './node-sources.ts';
import { Sample } from './sample.ts';

export interface FeedTimes {
  /** From one picture to the next. */
  readonly everyMs: number;
  /** The totals go through all sales of the shop, while all else goes through a page. */
  readonly totalsEveryMs: number;
  /** A picture waits this long for the parts that are being read. */
  readonly readingMs: number;
}

const DEFAULT_TIMES: FeedTimes = { everyMs: 1_000, totalsEveryMs: 5_000, readingMs: 500 };
/** Share of its time by which a reading may begin early: timers are not exact. */
const EARLY_SHARE = 0.1;
/** Pages and single sales that are read at the same time, however many consoles are open. */
const PARALLEL_READINGS = 4;

/** The parts of one console's pictures. */
interface Parts {
  readonly node: Sample<Awaited<ReturnType<NodeSources['node']>>>;
  readonly totals: Sample<Awaited<ReturnType<NodeSources['totals']>>>;
  readonly list: Sample<Awaited<ReturnType<NodeSources['list']>>> | undefined;
  readonly detail: Sample<Awaited<ReturnType<NodeSources['detail']>>> | undefined;
}

export class ConsoleFeed implements ConsoleOperations {
  readonly #sources: NodeSources;
  readonly #times: FeedTimes;
  /** What open consoles show, by its name. */
  readonly #samples = new Map<string, Sample<unknown>>();
  readonly #readings = pLimit(PARALLEL_READINGS);
  readonly #end = new AbortController();
  #consoles = 0;
  /** The wait for the next second and its readings, shared by all consoles that have asked for their next picture. */
  #turn: Promise<void> | undefined;

  constructor(sources: NodeSources, times = DEFAULT_TIMES) {
    this.#sources = sources;
    this.#times = times;
  }

  watch(query: ConsoleQuery): AsyncIterable<ConsolePicture> {
    if (this.#consoles >= MAX_CONSOLES) throw new TooManyConsoles();
    return this.#pictures(query);
  }

  /** How many consoles are open. */
  get consoles(): number {
    return this.#consoles;
  }

  /** Ends all pictures, so that a shutdown need not wait for their consoles. */
  stop(): void {
    this.#end.abort();
  }

  async *#pictures(query: ConsoleQuery): AsyncGenerator<ConsolePicture> {
    // Others may have begun since `watch` was called. This console asks again, and is refused.
    if (this.#consoles >= MAX_CONSOLES) return;
    this.#consoles++;
    const { parts, release } = this.#use(query);
    try {
      await this.#read(Object.values(parts));
      while (!this.#end.signal.aborted) {
        yield this.#picture(parts);
        await this.#nextTurn();
      }
    } finally {
      release();
      this.#consoles--;
    }
  }

  #picture({ node, totals, list, detail }: Parts): ConsolePicture {
    return {
      at: new Date().toISOString(),
      ...this.#sources.processes(),
      node: node.sampled,
      totals: totals.sampled,
      list: list?.sampled,
      detail: detail?.sampled,
    };
  }

  /** The samples that a console needs. Each is shared, and lives as long as a console uses it. */
  #use({ saleId, ...page }: ConsoleQuery): { parts: Parts; release: () => void } {
    const names: string[] = [];
    const use = <T>(name: string, read: () => Promise<T>, ms = this.#times.everyMs): Sample<T> => {
      const sample = (this.#samples.get(name) ?? new Sample(read, ms * (1 - EARLY_SHARE))) as Sample<T>;
      this.#samples.set(name, sample);
      sample.users++;
      names.push(name);
      return sample;
    };
    const sources = this.#sources;
    const list = () => this.#readings(() => sources.list(page));
    const detail = (id: string) => () => this.#readings(() => sources.detail(id));
    const parts = {
      node: use('node', sources.node),
      totals: use('totals', sources.totals, this.#times.totalsEveryMs),
      list: page.limit > 0 ? use(`list ${JSON.stringify(page)}`, list) : undefined,
      detail: saleId === undefined ? undefined : use(`sale ${saleId}`, detail(saleId)),
    };
    const release = () => {
      for (const name of names) if (--this.#samples.get(name)!.users === 0) this.#samples.delete(name);
    };
    return { parts, release };
  }

  #nextTurn(): Promise<void> {
    this.#turn ??= this.#restAndRead().finally(() => {
      this.#turn = undefined;
    });
    return this.#turn;
  }

  async #restAndRead(): Promise<void> {
    await rest(this.#times.everyMs, this.#end.signal);
    if (!this.#end.signal.aborted) await this.#read([...this.#samples.values()]);
  }

  /** Resolves when all are read, or after `readingMs`: the others go on being read. */
  async #read(samples: readonly (Sample<unknown> | undefined)[]): Promise<void> {
    const allRead = new AbortController();
    const limit = rest(this.#times.readingMs, allRead.signal);
    await Promise.race([Promise.all(samples.map((sample) => sample?.refresh())), limit]);
    allRead.abort();
  }
}
