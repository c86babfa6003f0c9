/** Descriptions of a configuration for logs, and of all settings for the documentation and help texts. */
import type { Config } from './config.ts';
import {
  groupOf,
  type Setting,
  type SettingGroup,
  type SettingName,
  settingNames,
  settings,
} from './settings.ts';
import { Secret } from './values/secret.ts';

/** The settings that have a value, by environment variable. Secrets and passwords are masked, so that all of it may be logged. */
export function describeConfig(config: Config): Record<string, string | number | boolean> {
  const described: Record<string, string | number | boolean> = {};
  for (const name of settingNames) {
    const value = config[name];
    if (value !== undefined)
      described[settings[name].env] = value instanceof Secret ? value.toString() : value;
  }
  return described;
}

/** All settings as Markdown, a table for each group, for docs/configuration.md. */
export function configTables(): string {
  const groups = [...new Set(settingNames.map(groupOf))];
  return groups
    .map((group) =>
      tableOf(
        group,
        settingNames.filter((name) => groupOf(name) === group),
      ),
    )
    .join('\n');
}

function tableOf(group: SettingGroup, names: readonly SettingName[]): string {
  const rows = names.map((name) => {
    const setting: Setting<unknown> = settings[name];
    const flag = setting.flag === undefined ? '' : `\`${setting.flag.split(' ')[0]}\``;
    return `| \`${setting.env}\` | ${flag} | ${defaultText(setting, '`')} | ${setting.description.replaceAll('|', '\\|')} |`;
  });
  return [
    `### ${group}`,
    '',
    '| variable | flag | default | meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** The default in words; `quote` surrounds a plain value. */
export function defaultText({ fallback, fallbackText }: Setting<unknown>, quote = ''): string {
  if (fallbackText !== undefined) return fallbackText;
  return fallback === undefined ? 'not set' : `${quote}${fallback}${quote}`;
}
