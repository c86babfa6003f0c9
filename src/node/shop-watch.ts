/**
 * What a process watches that works on stores which others work on too.
 *
 * Each second: whether Redis and Postgres are still those of the start, as a name in DNS, a failover or a proxy may lead to
 * others. If they are not, the process ends; no sale is rebuilt there meanwhile (shop/ownership.ts). What a take does to a
 * sale of the same name in that second is not prevented. A store that does not answer says nothing.
 *
 * Every other second: it tells the other processes that it runs, and learns whether their settings are its own.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Gauge, type Registry } from 'prom-client';
import type { Teardown } from '../lib/teardown.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import { ForeignStores } from '../shop/ownership.ts';
import { type ListedProcess, ProcessList } from '../shop/process-list.ts';
import type { Log } from './process/log.ts';
import { version } from './process/version.ts';
import { differencesTo, type SettingDifference } from './stores/shared-settings.ts';
import type { Stores } from './stores/stores.ts';

const LOOK_EVERY_MS = 1_000;
const LOOKS_PER_TELL = 2;
/** A store that is slower is asked again. */
const ANSWER_MS = 5_000;

export interface ShopWatchOptions {
  readonly stores: Pick<Stores, 'db' | 'ownership' | 'isShared'>;
  /** Digests of the settings that are to be the same everywhere. */
  readonly settings: Readonly<Record<string, string>>;
  readonly log: Log;
  readonly registry: Registry;
}

export class ShopWatch {
  readonly #options: ShopWatchOptions;
  readonly #list: ProcessList;
  readonly #gauge: Gauge;
  #looks = 0;
  #differences: readonly SettingDifference[] = [];
  #said = '';
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #stopped = false;
  #tellStrayed!: (error: Error) => void;
  /** Resolves with the reason if the stores are others than at the start. */
  readonly strayed = new Promise<Error>((resolve) => {
    this.#tellStrayed = resolve;
  });

  /** Begins at once. The stores have been claimed. */
  static begin(options: ShopWatchOptions, teardown: Teardown): ShopWatch {
    const watch = new ShopWatch(options);
    teardown.add(() => watch.#stop());
    if (options.stores.isShared) watch.#lookIn(0);
    return watch;
  }

  private constructor(options: ShopWatchOptions) {
    const { stores, settings, registry } = options;
    const process = `${hostname()}:${globalThis.process.pid}:${randomBytes(4).toString('hex')}`;
    this.#options = options;
    this.#list = new ProcessList(stores.db, { process, version: version(), settings });
    this.#gauge = new Gauge({
      name: 'stockade_settings_differing',
      help: 'Settings that must be the same in all processes of a shop, and that another process has differently',
      registers: [registry],
    });
  }

  /** By what the others have told last. */
  get differences(): readonly SettingDifference[] {
    return this.#differences;
  }

  #lookIn(ms: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().then((goesOn) => {
        if (goesOn) this.#lookIn(LOOK_EVERY_MS);
      });
    }, ms);
  }

  /** @returns whether there is more to look at */
  async #look(): Promise<boolean> {
    try {
      await withTimeout(ANSWER_MS, this.#options.stores.ownership.claim());
      if (this.#looks++ % LOOKS_PER_TELL === 0) this.#learn(await withTimeout(ANSWER_MS, this.#list.tell()));
    } catch (error) {
      if (!(error instanceof ForeignStores)) return true;
      this.#tellStrayed(error);
      return false;
    }
    return true;
  }

  #learn(others: readonly ListedProcess[]): void {
    const { settings, log } = this.#options;
    this.#differences = differencesTo(settings, others);
    this.#gauge.set(this.#differences.length);
    const differing = this.#differences.map((each) => ({
      setting: each.setting,
      processes: each.processes.map((other) => `${other.process}, version ${other.version}`),
    }));
    const found = JSON.stringify(differing);
    if (found === this.#said) return;
    if (differing.length > 0) {
      const what = 'settings differ from those of other processes of this shop: give all of them the same';
      log.warn({ differing, version: version() }, what);
    } else if (this.#said !== '') log.info('all processes of this shop have the same settings again');
    this.#said = differing.length > 0 ? found : '';
  }

  async #stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
    if (this.#looks > 0) await withTimeout(ANSWER_MS, this.#list.remove()).catch(() => {});
  }
}
