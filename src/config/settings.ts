/**
 * All settings. The environment, the command line, the help texts and the tables of the documentation are all made from these
 * tables, so that they always agree. settings/ has a file for each group.
 */

import type { Config } from './config.ts';
import { admissionSettings } from './settings/admission.ts';
import { buyersSettings } from './settings/buyers.ts';
import { eventsSettings } from './settings/events.ts';
import { limitsSettings } from './settings/limits.ts';
import { listeningSettings } from './settings/listening.ts';
import { operatorsSettings } from './settings/operators.ts';
import { processSettings } from './settings/process.ts';
import type { Setting, SettingTable, SettingUser } from './settings/setting.ts';
import { storesSettings } from './settings/stores.ts';
import { syncSettings } from './settings/sync.ts';
import { tracesSettings } from './settings/traces.ts';

const GROUPS = {
  Stores: storesSettings,
  Listening: listeningSettings,
  Buyers: buyersSettings,
  Admission: admissionSettings,
  Operators: operatorsSettings,
  Limits: limitsSettings,
  Sync: syncSettings,
  Events: eventsSettings,
  Process: processSettings,
  Traces: tracesSettings,
} as const;

export type SettingGroup = keyof typeof GROUPS;
export type SettingName = keyof Config;
export type { Setting };

export const settings: SettingTable<Config> = Object.assign({}, ...Object.values(GROUPS));

/** In the order of the groups. */
export const settingNames = Object.keys(settings) as SettingName[];

const groups = new Map<string, SettingGroup>(
  (Object.keys(GROUPS) as SettingGroup[]).flatMap((group) =>
    Object.keys(GROUPS[group]).map((name) => [name, group] as const),
  ),
);

/** The heading under which help texts list the setting. */
export const groupOf = (name: SettingName): SettingGroup => groups.get(name)!;

/** The settings of these groups, or of all groups, that have an effect for this user. */
export function settingsFor(user: SettingUser, ...groups: readonly SettingGroup[]): SettingName[] {
  return settingNames.filter((name) => {
    const { usedBy = [user] }: Setting<unknown> = settings[name];
    return usedBy.includes(user) && (groups.length === 0 || groups.includes(groupOf(name)));
  });
}
