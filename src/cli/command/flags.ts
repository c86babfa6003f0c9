/** Values of flags, and faults that name flags instead of the fields of the JSON. */
import { InvalidInput } from '../../engine/errors.ts';

/** Text that is not a number stays text: the schema then says what it must be. */
export function numberOrText(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

/** The error with flags instead of fields. @param flagOf the flag of a field, or the name itself if it is no field */
export function withFlags(
  { faults }: InvalidInput,
  message: string,
  flagOf: (field: string) => string,
): InvalidInput {
  const renamed = faults.map(({ field, problem }) => ({
    field: flagOf(field),
    // A problem may name another field: "must be after startsAt".
    problem: problem.replaceAll(/\b[a-z]+[A-Z]\w*/g, flagOf),
  }));
  return new InvalidInput(message, renamed);
}

/** Returns text that is not JSON as it is: the schema then reports what is allowed. */
export function parsedOrText(value: unknown): unknown {
  try {
    return JSON.parse(String(value));
  } catch {
    return value;
  }
}
