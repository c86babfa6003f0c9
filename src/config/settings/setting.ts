import type { z } from 'zod';

/** A node, `stockade sync`, or a command that ends by itself. */
export type SettingUser = 'node' | 'sync' | 'command';

/** One setting: where its value is read from, which values are valid, and its description. */
export interface Setting<T> {
  /** The environment variable. */
  readonly env: string;
  /** In the form of commander. Secrets have none, because every user of the machine can read a command line. */
  readonly flag?: string;
  readonly schema: z.ZodType<T>;
  /** The default; a function if it depends on the settings before this one. */
  readonly fallback: T | ((others: Readonly<Record<string, unknown>>) => T);
  /** The default in words, if its value does not explain itself. */
  readonly fallbackText?: string;
  readonly description: string;
  /** For whom it has an effect. Missing: for all whose group of settings it is in. */
  readonly usedBy?: readonly SettingUser[];
  /**
   * All processes of a shop must have the same value, or the same content of the file that it names. Otherwise nodes would
   * treat the same buyer, token or event differently. Settings without this may differ between processes.
   */
  readonly shared?: 'value' | 'file';
}

/** The settings of one group, by their names in the configuration. */
export type SettingTable<T> = { readonly [K in keyof T]: Setting<T[K]> };
