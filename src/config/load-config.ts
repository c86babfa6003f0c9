/**
 * Loads the settings: flags override the environment, which overrides the defaults. Everything is checked before anything
 * starts, and all faults are listed at once, so that an operator can correct them together.
 */

import { StockadeError } from '../engine/errors.ts';
import type { Config } from './config.ts';
import { misspeltIn, misspeltText } from './misspelt.ts';
import { relations } from './relations.ts';
import { type Setting, type SettingName, settingNames, settings } from './settings.ts';
import { originOnly, SecretUrl, withoutSecrets } from './values/secret.ts';

export interface ConfigFault {
  /** The environment variable or the flag that holds the fault. */
  readonly field: string;
  readonly problem: string;
}

export class ConfigError extends StockadeError {
  readonly faults: readonly ConfigFault[];

  constructor(faults: readonly ConfigFault[]) {
    super('invalid_config', `the configuration is not valid: ${faults.map(faultText).join('; ')}`);
    this.faults = faults;
  }
}

function faultText({ field, problem }: ConfigFault): string {
  return `${field} ${problem}`;
}

type Values = Partial<Record<string, unknown>>;

/**
 * @param flags by the names of Config. `undefined` means that a flag was not given; other names are ignored
 * @param defaults of this command, where they differ from those of the settings
 * @param used the settings that this command uses. Relations between other settings, and files that they name, are not checked
 * @throws ConfigError with all faults at once
 */
export function loadConfig(
  env: NodeJS.ProcessEnv,
  flags: Values,
  defaults: Partial<Record<SettingName, unknown>> = {},
  used: readonly SettingName[] = settingNames,
): Config {
  const faults: ConfigFault[] = [];
  const faulty = new Set<SettingName>();
  const values: Record<string, unknown> = {};
  /** The variable or flag that gave each value. */
  const fields = new Map<SettingName, string>();
  for (const name of settingNames) {
    const given = find(name, env, flags, defaults);
    if (given === undefined) continue;
    fields.set(name, given.field);
    const parsed = settings[name].schema.safeParse(given.value);
    if (parsed.success) {
      values[name] = parsed.data;
      if (given.isFlag && parsed.data instanceof SecretUrl && parsed.data.holdsSecret)
        faults.push({ field: given.field, problem: onCommandLine(settings[name].env) });
    } else {
      faulty.add(name);
      faults.push({
        field: given.field,
        problem: problemOf(name, given.value, parsed.error.issues[0]?.message),
      });
    }
  }
  fillIn(values, faulty);
  faults.push(...brokenRelations(values as unknown as Config, faulty, used, fields));
  if (faults.length > 0) throw new ConfigError([...faults, ...misspeltFaults(env, used)]);
  return values as unknown as Config;
}

/** No faults by themselves, but they may explain the others. */
function misspeltFaults(env: NodeJS.ProcessEnv, used: readonly SettingName[]): ConfigFault[] {
  return misspeltIn(env, used).map((misspelt) => ({
    field: misspelt.variable,
    problem: misspeltText(misspelt),
  }));
}

interface Given {
  readonly field: string;
  readonly value: unknown;
  readonly isFlag: boolean;
}

/** A fault and not a warning: with a warning the process would start, and all users of the machine could read the secret. */
function onCommandLine(env: string): string {
  return `holds a user, password or key, and every user of this machine can read a command line: set ${env} in the environment instead, and replace the secret, because others may have read it`;
}

function find(name: SettingName, env: NodeJS.ProcessEnv, flags: Values, defaults: Values): Given | undefined {
  const setting: Setting<unknown> = settings[name];
  const flag = flags[name];
  if (flag !== undefined) return { field: setting.flag?.split(' ')[0] ?? name, value: flag, isFlag: true };
  const variable = env[setting.env];
  // Compose files and CI set variables without a value to ''.
  if (variable !== undefined && variable !== '')
    return { field: setting.env, value: variable, isFlag: false };
  const fallback = defaults[name];
  return fallback === undefined ? undefined : { field: setting.env, value: fallback, isFlag: false };
}

function problemOf(name: SettingName, value: unknown, mustBe = 'must have another form'): string {
  return `is ${shown(name, value)}, but ${mustBe}`;
}

/** A wrong value may still be a secret: a password in a mistyped URL, a key that lacks a character. */
function shown(name: SettingName, value: unknown): string {
  const text = String(value);
  if (settings[name].flag === undefined) return `${text.length} characters long`;
  if (name === 'webhookUrl') return originOnly(text);
  if (name.endsWith('Url')) return withoutSecrets(text);
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function fillIn(values: Record<string, unknown>, faulty: ReadonlySet<SettingName>): void {
  for (const name of settingNames) {
    if (name in values || faulty.has(name)) continue;
    const { fallback }: Setting<unknown> = settings[name];
    values[name] = typeof fallback === 'function' ? fallback(values) : fallback;
  }
}

function brokenRelations(
  config: Config,
  faulty: ReadonlySet<SettingName>,
  used: readonly SettingName[],
  fields: ReadonlyMap<SettingName, string>,
): ConfigFault[] {
  return relations.flatMap(({ of, broken }) => {
    if (!of.some((name) => used.includes(name)) || of.some((name) => faulty.has(name))) return [];
    const problem = broken(config);
    return problem === undefined ? [] : [{ field: fields.get(of[0]!) ?? settings[of[0]!].env, problem }];
  });
}
