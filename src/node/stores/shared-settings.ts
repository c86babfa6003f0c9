/**
 * Compares the settings that all processes of a shop must share (`shared` in config/settings.ts). Each process writes digests
 * of its settings to Postgres. The digests are keyed, and the key is stored in another table; without it, a copy of the
 * process list reveals no secret.
 *
 * Differences are allowed, because they are normal while an operator changes a setting node by node. They are reported in the
 * log, in the metrics and by `/readyz` until the settings are the same again.
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
  /** The processes that have another value. */
  readonly processes: readonly ListedProcess[];
  /** How many other processes have the setting at all. */
  readonly of: number;
}

/** The key with which all processes of this database make their digests. */
export function digestKey(db: Database): Promise<Uint8Array> {
  return sharedKey(db, DIGEST_KEY);
}

/**
 * Digests of the shared settings among those that this process uses, by environment variable.
 * @param handlesEvents events go to a function of this program. A process without it would deliver them elsewhere, or delete them,
 * so the URL counts as another one
 */
export function settingDigests(
  config: Config,
  used: readonly SettingName[],
  key: Uint8Array,
  handlesEvents = false,
): Record<string, string> {
  const shared = used.filter((name) => settings[name].shared !== undefined);
  const value = (name: SettingName) =>
    handlesEvents && name === 'webhookUrl' ? 'a handler' : valueIn(config, name);
  return Object.fromEntries(
    shared.map((name) => [settings[name].env, digest(key, settings[name].env, value(name))]),
  );
}

/** The settings, among these, that a process which sells uses. Without sync it relays no events. */
export function settingsOfNode(
  { sync }: Config,
  among: readonly SettingName[] = settingNames,
): SettingName[] {
  return among.filter((name) => sync || groupOf(name) !== 'Events');
}

/** The settings that `stockade sync` uses and shares: it serves no buyers, so only those of the events. */
export function settingsOfSync(): SettingName[] {
  return settingNames.filter((name) => groupOf(name) === 'Events');
}

/** The settings whose digests differ. One that another process lacks does not count: another version may not know it. */
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
