import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { BenchFailure } from '../failure.ts';
import type { CrowdMessage, CrowdOrder } from './crowd-program.ts';
import type { StreamPlan, StreamResult } from './stream.ts';

const PROGRAM = fileURLToPath(new URL('./crowd-program.ts', import.meta.url));
/** Time until the run begins, so that all processes know of it before. */
const HEAD_START_MS = 200;

type Done = Extract<CrowdMessage, { kind: 'done' }>;

/**
 * Runs groups of streams, each in a process of its own. All begin at the same moment, after all are connected.
 * @param began called with that moment, by `Date.now()`
 * @returns the answers of all
 */
export async function runCrowd(
  url: string,
  groups: readonly (readonly StreamPlan[])[],
  began: (beginMs: number) => void = () => {},
): Promise<{ results: Readonly<Record<string, StreamResult>>; cpuSeconds: number }> {
  const members = groups.map(() => fork(PROGRAM));
  try {
    await Promise.all(
      members.map((member, i) => {
        const ready = nextMessage(member);
        member.send({ url, plans: groups[i]! } satisfies CrowdOrder);
        return ready;
      }),
    );
    const done = members.map((member) => nextMessage(member) as Promise<Done>);
    const beginMs = Date.now() + HEAD_START_MS;
    began(beginMs);
    for (const member of members) member.send({ beginMs });
    const all = await Promise.all(done);
    return {
      results: Object.assign({}, ...all.map(({ results }) => results)),
      cpuSeconds: all.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    };
  } finally {
    for (const member of members) if (member.connected) member.disconnect();
  }
}

export function nextMessage(member: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const died = (code: number | null) =>
      reject(new BenchFailure(`a process of buyers ended with code ${code}`));
    member.once('exit', died);
    member.once('message', (message) => {
      member.off('exit', died);
      resolve(message);
    });
  });
}
