/** The operator who makes a change, and the reason. Both are stored with the change. */
import { InvalidInput } from '../errors.ts';
import { text } from '../storable.ts';

export interface Author {
  readonly actor: string;
  /** `''`: none was given. */
  readonly reason: string;
}

const MAX_ACTOR_CHARACTERS = 200;
const MAX_REASON_CHARACTERS = 500;

/** The member `reason` of a change's JSON. */
export const reason = text(MAX_REASON_CHARACTERS).default('');

/** @param field where it was given, for the error. @throws InvalidInput */
export function parseActor(name: string, field = 'X-Operator'): string {
  if (name.length <= MAX_ACTOR_CHARACTERS && /^[\x20-\x7e]+$/.test(name)) return name;
  throw new InvalidInput('the operator is not valid', [
    { field, problem: `must be 1 to ${MAX_ACTOR_CHARACTERS} printable ASCII characters` },
  ]);
}

/** @throws InvalidInput */
export function parseReason(given: unknown): string {
  const parsed = reason.safeParse(given);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ message }) => ({ field: 'reason', problem: message }));
  throw new InvalidInput('the reason is not valid', faults);
}
