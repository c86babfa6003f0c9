/**
 * Environment variables that look like a setting and are none. They would have no effect, and nobody would notice that
 * `RATE_LIMIT_ADRESS` limits nothing.
 */
import { distance } from 'fastest-levenshtein';
import { type SettingName, settingNames, settings } from './settings.ts';

/** Shorter names are not compared: variables of other programs may differ from them by as few letters as `HOST` from `PORT`. */
const LEAST_CHARACTERS = 6;
/** From this length on, two mistakes count as one name misspelt, for example two letters in the wrong order. */
const LONG_NAME = 9;

export interface Misspelt {
  /** The variable that is set. */
  readonly variable: string;
  /** The variable of the setting that was probably meant. It is not set. */
  readonly meant: string;
}

/** What is said of a misspelt variable, after its name. */
export function misspeltText({ meant }: Misspelt): string {
  return `has no effect: is ${meant} meant?`;
}

/** @param used the settings that may be meant */
export function misspeltIn(env: NodeJS.ProcessEnv, used: readonly SettingName[]): Misspelt[] {
  const known = new Set(settingNames.map((name) => settings[name].env));
  const unset = used.map((name) => settings[name].env).filter((variable) => !env[variable]);
  return Object.keys(env).flatMap((variable) => {
    if (!env[variable] || known.has(variable)) return [];
    const meant = unset.find((one) => isNear(variable, one));
    return meant === undefined ? [] : [{ variable, meant }];
  });
}

function isNear(variable: string, setting: string): boolean {
  if (setting.length < LEAST_CHARACTERS) return false;
  const most = setting.length < LONG_NAME ? 1 : 2;
  return Math.abs(variable.length - setting.length) <= most && distance(variable, setting) <= most;
}
