/**
 * Settings that all processes of a shop must share (`shared` in config/settings.ts), as each tells the others: digests under a
 * key that is kept in Postgres, so that none of them tells a secret to who reads the table or a backup of it without that key.
 *
 * Nothing is refused where they differ: while settings are changed node by node they do. It is said, in the log, in the metrics
 * and by `/readyz`, until they are the same again.
 */
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { groupOf, type Setting, type SettingName, settingNames, settings } from '../../config/settings.ts';
import { Secret } from '../../config/values/secret.ts';
import type { Database } from '../../postgres/database.ts';
import { sharedKey } from '../../postgres/shared-keys.ts';
import type { ListedProcess } from '../../shop/process-list.ts';

const DIGEST_KEY = 'shared_settings_key';
const DIGEST_BYTES = 16;

/** A setting in which this process differs from others. */
export interface SettingDifference {
  /** Its environment variable. */
  readonly setting: string;
  /** Those that have another value. */
  readonly processes: readonly ListedProcess[];
  /** How many others have the setting. */
  readonly of: number;
}

/** Under which all processes of this database make their digests. */
export function digestKey(db: Database): Promise<Uint8Array> {
  return sharedKey(db, DIGEST_KEY);
}

/** Of the settings that this process goes by. */
export function settingDigests(
  config: Config,
  used: readonly SettingName[],
  key: Uint8Array,
): Record<string, string> {
  const shared = used.filter((name) => settings[name].shared !== undefined);
  return Object.fromEntries(
    shared.map((name) => [settings[name].env, digest(key, settings[name].env, valueIn(config, name))]),
  );
}

/** A node without sync relays no events. */
export function settingsOfNode({ sync }: Config): SettingName[] {
  return settingNames.filter((name) => sync || groupOf(name) !== 'Events');
}

/** `stockade sync` has no buyers. */
export function settingsOfSync(): SettingName[] {
  return settingNames.filter((name) => groupOf(name) === 'Events');
}

/** Only what both have can differ: another version may not know a setting. */
export function differencesTo(
  own: Readonly<Record<string, string>>,
  others: readonly ListedProcess[],
): SettingDifference[] {
  return Object.entries(own).flatMap(([setting, value]) => {
    const having = others.filter((other) => other.settings[setting] !== undefined);
    const processes = having.filter((other) => other.settings[setting] !== value);
    return processes.length === 0 ? [] : { setting, processes, of: having.length };
  });
}

function digest(key: Uint8Array, setting: string, value: string): string {
  const mac = createHmac('sha256', key).update(`${setting}\0${value}`).digest();
  return mac.subarray(0, DIGEST_BYTES).toString('base64url');
}

function valueIn(config: Config, name: SettingName): string {
  const value = config[name];
  if (value === undefined) return 'not set';
  const text = value instanceof Secret ? value.reveal() : String(value);
  const { shared }: Setting<unknown> = settings[name];
  return `set: ${shared === 'file' && text !== 'pow' ? readFileSync(text, 'base64') : text}`;
}
