import { Interrupted } from './explain.ts';
import { note } from './output.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export interface Interruption {
  /** Resolves with the first signal. */
  readonly asked: Promise<NodeJS.Signals>;
  /** Aborted by the first signal; its reason is `Interrupted`. */
  readonly signal: AbortSignal;
  /** Gives the signals back to Node, which ends the process at once. */
  release(): void;
}

/** The first SIGINT or SIGTERM asks the command to end; a second one does not wait for that. */
export function watchSignals(): Interruption {
  const abort = new AbortController();
  let ask: (signal: NodeJS.Signals) => void = () => {};
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    ask = resolve;
  });
  const onSignal = (signal: NodeJS.Signals) => {
    // Not `process.exit`: it stops worker threads under their open sockets, at which Node aborts with a core dump.
    if (abort.signal.aborted) {
      note(`A second signal, ${signal}: ended at once, whatever was under way.`);
      process.kill(process.pid, 'SIGKILL');
    }
    abort.abort(new Interrupted(signal));
    ask(signal);
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
