import { execFileSync } from 'node:child_process';
import type { Account } from './process/server-process.ts';

/** Postgres and PgBouncer refuse to run as root. Then they run as the account of Postgres' package, or else as nobody. */
export function postgresAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  return accountOf('postgres') ?? accountOf('nobody');
}

function accountOf(user: string): Account | undefined {
  const id = (flag: string) =>
    Number(execFileSync('id', [flag, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  try {
    return { uid: id('-u'), gid: id('-g') };
  } catch {
    return undefined;
  }
}
