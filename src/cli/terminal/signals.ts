import { Interrupted } from './explain.ts';
import { note } from './output.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

let isTerminalClosed = false;

/**
 * Ends the process as SIGHUP does by default, if that signal has asked it to end. Node can't exit then: it aborts, because it can't
 * restore the settings of a terminal that is gone.
 */
export function endIfTerminalClosed(): void {
  if (!isTerminalClosed) return;
  process.removeAllListeners('SIGHUP');
  process.kill(process.pid, 'SIGHUP');
}

export interface Interruption {
  /** Resolves with the first signal. */
  readonly asked: Promise<NodeJS.Signals>;
  /** Aborted by the first signal; its reason is `Interrupted`. */
  readonly signal: AbortSignal;
  /** Restores Node's handling of the signals: the next one ends the process at once. */
  release(): void;
}

/** What a process has started; `undefined` if a signal has ended the start. That is no failure: somebody wanted the process to end. */
export async function unlessInterrupted<T>(
  { asked, signal }: Interruption,
  log: { info(values: object, message: string): void },
  start: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await start(signal);
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    log.info({ signal: await asked }, 'stopped during the start');
    return undefined;
  }
}

/** Not `process.exit`: it stops worker threads that have open sockets, at which Node aborts with a core dump. */
function endAtOnce(signal: NodeJS.Signals): never {
  note(`A second signal, ${signal}: ended at once, without waiting for the work under way.`);
  process.kill(process.pid, 'SIGKILL');
  // Reached only by the first process of a container, to which Linux does not deliver that signal.
  process.abort();
}

/**
 * The first SIGINT, SIGTERM or SIGHUP (the terminal was closed) asks the command to end. A later SIGINT or SIGTERM kills the process at
 * once. A later SIGHUP does nothing: a terminal that is closed may cause two, one of the kernel and one of the shell.
 */
export function watchSignals(): Interruption {
  const abort = new AbortController();
  let ask: (signal: NodeJS.Signals) => void = () => {};
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    ask = resolve;
  });
  const onSignal = (signal: NodeJS.Signals) => {
    isTerminalClosed ||= signal === 'SIGHUP';
    if (!abort.signal.aborted) {
      abort.abort(new Interrupted(signal));
      ask(signal);
    } else if (signal !== 'SIGHUP') endAtOnce(signal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    asked,
    signal: abort.signal,
    release: () => {
      for (const signal of SIGNALS) process.off(signal, onSignal);
    },
  };
}

/**
 * What the work gives, unless the signal comes before. The work goes on then, and its result is discarded.
 * @throws the reason of the signal; what the work throws
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
