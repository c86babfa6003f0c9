import type { z } from 'zod';

/** What one setting is: where its value is read from, what it must be, and what people are told about it. */
export interface Setting<T> {
  /** The environment variable. */
  readonly env: string;
  /** As commander takes it. Missing for secrets: everyone on the machine can read a command line. */
  readonly flag?: string;
  readonly schema: z.ZodType<T>;
  /** The value that holds if nobody sets one; a function if that depends on the settings before it. */
  readonly fallback: T | ((others: Readonly<Record<string, unknown>>) => T);
  /** The fallback in words, where its value alone would not explain itself. */
  readonly fallbackText?: string;
  readonly description: string;
  /**
   * All processes of a shop must have the same: the value itself, or the file that it names. Otherwise it would depend on the
   * node how a buyer, a token or an event is treated. Settings without it may differ from machine to machine.
   */
  readonly shared?: 'value' | 'file';
}

/** The settings of one group, by their names in the configuration. */
export type SettingTable<T> = { readonly [K in keyof T]: Setting<T[K]> };
