import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

interface ProcessEntry {
  pid: number;
  parent: number;
  /** One letter, as ps shows it: R running, S sleeping, T stopped, Z ended but not collected by its parent. */
  state: string;
}

/** Linux counts a process's CPU time in these, whatever the kernel's own tick is. */
const ticksPerSecond = 100;

export function childrenOf(pid: number): number[] {
  return allProcesses()
    .filter((entry) => entry.parent === pid && entry.state !== 'Z')
    .map((entry) => entry.pid);
}

export function isAlive(pid: number): boolean {
  const state = stateOf(pid);
  return state !== undefined && state !== 'Z';
}

/** True for a process that no longer runs: it was stopped by a signal, or has ended. */
export function isAtRest(pid: number): boolean {
  return !isAlive(pid) || stateOf(pid) === 'T';
}

/** The CPU time, user and system, that a process with all its threads has used so far. */
export function cpuSecondsOf(pid: number): number {
  return cpuTimeOf(pid).own;
}

/** The CPU time of the children that a process had and that have ended. */
export function endedChildrenCpuSecondsOf(pid: number): number {
  return cpuTimeOf(pid).endedChildren;
}

/**
 * The CPU time of a process and all its children, including ended ones. None of them may have threads: the scheduler's account of
 * live processes, in nanoseconds, does not include threads.
 */
export function familyCpuSecondsOf(pid: number): number {
  let seconds = scheduledSecondsOf(pid) + endedChildrenCpuSecondsOf(pid);
  // A child that ends at this moment is missed once; next time it is among the ended ones.
  for (const child of childrenOf(pid)) if (isAlive(child)) seconds += scheduledSecondsOf(child);
  return seconds;
}

/** The scheduler's account of the process, which some kernels don't have. */
function scheduledSecondsOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
  } catch {
    return cpuTimeOf(pid).own;
  }
}

/** The resident memory of a process. */
export function residentBytesOf(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1024;
}

function cpuTimeOf(pid: number): { own: number; endedChildren: number } {
  const fields = statFields(pid);
  if (!fields) throw new Error(`no /proc/${pid}/stat: CPU time is only known for live processes on Linux`);
  const [user, system, childrensUser, childrensSystem] = fields.slice(11, 15).map(Number);
  return {
    own: (user! + system!) / ticksPerSecond,
    endedChildren: (childrensUser! + childrensSystem!) / ticksPerSecond,
  };
}

function stateOf(pid: number): string | undefined {
  if (process.platform === 'linux') return statFields(pid)?.[0];
  return allProcesses().find((entry) => entry.pid === pid)?.state;
}

function allProcesses(): ProcessEntry[] {
  return process.platform === 'linux' ? readProc() : askPs();
}

function readProc(): ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const fields = statFields(Number(name));
      return fields ? [{ pid: Number(name), parent: Number(fields[1]), state: fields[0] ?? '' }] : [];
    });
}

/** The fields of /proc/<pid>/stat from the state on. What comes before is the name, which may hold anything. */
function statFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function askPs(): ProcessEntry[] {
  const listing = execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'ppid=', '-o', 'state='], {
    encoding: 'utf8',
  });
  return listing
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, parent, state] = line.trim().split(/\s+/);
      return { pid: Number(pid), parent: Number(parent), state: state?.[0] ?? '' };
    });
}
