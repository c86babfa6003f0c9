/** The flags of every command that makes a change: who makes it, and why. */
import { userInfo } from 'node:os';
import { Option } from 'commander';
import { InvalidInput } from '../../engine/errors.ts';
import { type Author, parseActor, parseReason } from '../../engine/sale/author.ts';

export const AUTHOR_OPTIONS = [
  new Option('--reason <text>', 'why, for the record'),
  new Option('--by <name>', 'who does it, for the record (default: the user of this shell)'),
];

/** @throws InvalidInput that names the flags */
export function authorOf({ by, reason }: Readonly<Record<string, unknown>>): Author {
  return {
    actor: naming('--by', () => parseActor(by === undefined ? userOfShell() : String(by))),
    reason: naming('--reason', () => parseReason(reason)),
  };
}

/** The name of the user who runs the command. In a container the user may have a number only. */
function userOfShell(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

function naming<T>(flag: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    const faults = error.faults.map(({ problem }) => ({ field: flag, problem }));
    throw new InvalidInput(`${flag} is not valid`, faults);
  }
}
