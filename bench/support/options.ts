import { type Command, InvalidArgumentError, Option } from 'commander';

/** An option that takes a whole number. Its default is in the table of the bench. */
export interface NumberOption {
  /** As commander takes it: `--seconds <n>`. */
  readonly flags: string;
  readonly description: string;
  readonly least: number;
  readonly most: number;
  readonly fallback: number;
  /** The value with `--tiny`. */
  readonly tiny?: number;
}

/** For benches whose sales have as many segments as a shop's usually have. */
export const SEGMENTS: NumberOption = {
  flags: '--segments <n>',
  description: 'segments of the sales',
  least: 1,
  most: 1_024,
  fallback: 8,
};

export type NumberOptions = Readonly<Record<string, NumberOption>>;
export type Parameters<T extends NumberOptions> = { readonly [K in keyof T]: number };

export interface Invocation<T extends NumberOptions> {
  readonly parameters: Parameters<T>;
  readonly json: boolean;
}

/** Reads the command line. A given value comes first, then the one of `--tiny`, then the default. */
export function parseOptions<T extends NumberOptions>(
  program: Command,
  table: T,
  argv: readonly string[],
): Invocation<T> {
  for (const { flags, description, least, most, fallback } of Object.values(table)) {
    const text = `${description} (default: ${fallback})`;
    program.addOption(new Option(flags, text).argParser(wholeNumber(least, most)));
  }
  program.option(
    '--tiny',
    'a run of a few seconds that only shows that everything works; its figures mean nothing',
  );
  program.option('--json', 'print one JSON object on stdout and nothing else there');
  const given = program.parse(argv).opts<Record<string, number | boolean | undefined>>();
  const parameters = Object.fromEntries(
    Object.entries(table).map(([name, { fallback, tiny = fallback }]) => [
      name,
      given[name] ?? (given.tiny ? tiny : fallback),
    ]),
  );
  return { parameters: parameters as Parameters<T>, json: given.json === true };
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

/** `--seconds 10 --workers 2`: the options that repeat the run. */
export function parametersText<T extends NumberOptions>(table: T, parameters: Parameters<T>): string {
  return Object.entries(table)
    .map(([name, { flags }]) => `${flags.split(' ')[0]} ${parameters[name as keyof T]}`)
    .join(' ');
}
