import { InvalidInput } from '../../engine/errors.ts';

/**
 * The body of an operation with one switch, such as `{"dryRun": true}`; nothing means false.
 * @param what it is the body of, for the error
 * @throws InvalidInput
 */
export function parseFlag(body: unknown, name: string, what: string): boolean {
  const invalid = (field: string, problem: string) =>
    new InvalidInput(`the ${what} is not valid`, [{ field, problem }]);
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (body !== undefined && !isObject) throw invalid('body', 'must be an object');
  const { [name]: flag = false, ...rest } = (body ?? {}) as Record<string, unknown>;
  if (typeof flag !== 'boolean') throw invalid(name, 'must be true or false');
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw invalid(unknown, 'is not known here');
  return flag;
}
