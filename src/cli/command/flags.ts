/** Values of flags, and faults that name flags instead of the fields of the JSON. */
import { InvalidInput } from '../../engine/errors.ts';
import { parseExactly } from '../../engine/sale/exact-json.ts';
import type { CommandSpec } from './command.ts';

/**
 * Text that is not a whole number stays text: the schema then says what it must be. `Number` would make a whole number of
 * 100.00000000000000001, which nobody meant. A price of 49.00 is 49 euros, and not 49 cents.
 */
export function numberOrText(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
}

/** The error with flags instead of fields. @param flagOf the flag of a field, or the name itself if it is no field */
export function withFlags(
  { faults }: InvalidInput,
  message: string,
  flagOf: (field: string) => string,
): InvalidInput {
  const renamed = faults.map(({ field, problem }) => ({
    field: flagOf(field),
    // A problem may name another field: "must be after startsAt", "must be after `since`".
    problem: problem.replaceAll(/`([a-z]\w*)`|\b[a-z]+[A-Z]\w*/g, (text, quoted) => {
      const name = quoted ?? text;
      const flag = flagOf(name);
      return flag === name ? text : flag;
    }),
  }));
  return new InvalidInput(message, renamed);
}

/**
 * Runs the work. If it finds the input invalid, the faults name flags instead of fields.
 * @param what the input, for the message: "the change"
 * @param command each of its options sets the field that has its name
 * @param others the flags or arguments of fields with other names: `{ saleId: '--sale' }`
 * @throws what the work throws
 */
export async function namingFlags<T>(
  what: string,
  { options = [] }: Pick<CommandSpec, 'options'>,
  work: () => T | Promise<T>,
  others: Readonly<Record<string, string>> = {},
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const flagOf = (field: string) =>
      others[field] ?? options.find((option) => option.attributeName() === field)?.long ?? field;
    throw withFlags(error, `${what} is not valid`, flagOf);
  }
}

/** Returns text that is not JSON as it is: the schema then reports what is allowed. */
export function parsedOrText(value: unknown): unknown {
  try {
    return parseExactly(String(value));
  } catch {
    return value;
  }
}
