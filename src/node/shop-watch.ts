/**
 * Checks that a process makes while it runs, if other processes can use its stores too.
 *
 * Each second it checks that Redis and Postgres are still those of the start: a DNS name, a failover or a proxy may lead to
 * others. If they are not, the process ends; until then it rebuilds no sale there (shop/ownership.ts). Takes go on for up to
 * a second, and may sell from a sale of the same id in the other store. If a store does not answer, the check says nothing.
 *
 * Every other second it tells the other processes that it runs, and compares its settings with theirs.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Gauge, type Registry } from 'prom-client';
import type { Teardown } from '../lib/teardown.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { ConsolePicture } from '../operations/console/console-operations.ts';
import { ForeignStores } from '../shop/foreign-stores.ts';
import { type ListedProcess, ProcessList } from '../shop/process-list.ts';
import type { Log } from './process/log.ts';
import { version } from './process/version.ts';
import { differencesTo, type SettingDifference } from './stores/shared-settings.ts';
import type { Stores } from './stores/stores.ts';

const CHECK_EVERY_MS = 1_000;
const CHECKS_PER_REPORT = 2;
/** Limit for each answer of the stores. A check without an answer says nothing; the next one comes after the usual pause. */
const ANSWER_MS = 5_000;

export interface ShopWatchOptions {
  readonly stores: Pick<Stores, 'db' | 'ownership' | 'isShared'>;
  /** Digests of the settings that must be the same in all processes. */
  readonly settings: Readonly<Record<string, string>>;
  readonly log: Log;
  readonly registry: Registry;
}

export class ShopWatch {
  readonly #options: ShopWatchOptions;
  readonly #list: ProcessList;
  /** The name of this process in the list. */
  readonly #process: string;
  readonly #gauge: Gauge;
  /** How often the stores were those of the start. */
  #checks = 0;
  #differences: readonly SettingDifference[] = [];
  #others: readonly ListedProcess[] = [];
  /** The differences as they were last logged; `''` if there were none. */
  #logged = '';
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;
  #stopped = false;
  #tellStoresChanged!: (error: Error) => void;
  /** Resolves with the reason if the stores are others than at the start. */
  readonly storesChanged = new Promise<Error>((resolve) => {
    this.#tellStoresChanged = resolve;
  });

  /** Begins at once. The stores must have been claimed. */
  static begin(options: ShopWatchOptions, teardown: Teardown): ShopWatch {
    const watch = new ShopWatch(options);
    teardown.add(() => watch.#stop());
    if (options.stores.isShared) watch.#checkIn(0);
    return watch;
  }

  private constructor(options: ShopWatchOptions) {
    const { stores, settings, registry } = options;
    const process = `${hostname()}:${globalThis.process.pid}:${randomBytes(4).toString('hex')}`;
    this.#process = process;
    this.#options = options;
    this.#list = new ProcessList(stores.db, { process, version: version(), settings });
    this.#gauge = new Gauge({
      name: 'stockade_settings_differing',
      help: 'Shared settings whose value in another process of the shop differs',
      registers: [registry],
    });
  }

  /** This process and the others of the shop that run, as of the last comparison. */
  processes(): Pick<ConsolePicture, 'process' | 'version' | 'others'> {
    const others = this.#others.map((other) => {
      const differing = this.#differences.filter(({ processes }) => processes.includes(other));
      return {
        process: other.process,
        version: other.version,
        differs: differing.map(({ setting }) => setting),
      };
    });
    return { process: this.#process, version: version(), others };
  }

  /** As of the last comparison. */
  get differences(): readonly SettingDifference[] {
    return this.#differences;
  }

  #checkIn(ms: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#checking = this.#check().then((isSame) => {
        if (isSame) this.#checkIn(CHECK_EVERY_MS);
      });
    }, ms);
  }

  /** @returns false once the stores have changed: then there is nothing more to check */
  async #check(): Promise<boolean> {
    try {
      await withTimeout(ANSWER_MS, this.#options.stores.ownership.claim());
      if (this.#checks++ % CHECKS_PER_REPORT === 0)
        this.#learn(await withTimeout(ANSWER_MS, this.#list.report()));
    } catch (error) {
      if (!(error instanceof ForeignStores)) return true;
      this.#tellStoresChanged(error);
      return false;
    }
    return true;
  }

  #learn(others: readonly ListedProcess[]): void {
    const { settings, log } = this.#options;
    this.#others = others;
    this.#differences = differencesTo(settings, others);
    this.#gauge.set(this.#differences.length);
    const differing = this.#differences.map((each) => ({
      setting: each.setting,
      processes: each.processes.map((other) => `${other.process}, version ${other.version}`),
    }));
    const text = JSON.stringify(differing);
    if (text === this.#logged) return;
    if (differing.length > 0) {
      const what =
        'settings differ from those of other processes of this shop: give them the same value everywhere';
      log.warn({ differing, version: version() }, what);
    } else if (this.#logged !== '') log.info('all processes of this shop have the same settings again');
    this.#logged = differing.length > 0 ? text : '';
  }

  async #stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#checking;
    if (this.#checks > 0) await withTimeout(ANSWER_MS, this.#list.remove()).catch(() => {});
  }
}
