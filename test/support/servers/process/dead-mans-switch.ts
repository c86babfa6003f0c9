/**
 * Ends a server and removes its directory when the process that started it dies, however it dies.
 *
 * Exit handlers don't run in a process that is killed, and test runners kill their workers. So each server has a small shell
 * beside it, which only reads a pipe from this process. Each line is the pid to end, or empty while there is none. The pipe
 * closes when this process dies, or releases the shell. The shell ends only the pid last written, and that pid is withdrawn as
 * soon as the server is known to have ended.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

const script = `
directory=$1 signal=$2 pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -s "$signal" "$pid"
  kill -s CONT "$pid"
  left=50
  while [ "$left" -gt 0 ] && kill -0 "$pid"; do sleep 0.1; left=$((left - 1)); done
  kill -s KILL "$pid"
fi
rm -rf -- "$directory" || { sleep 1; rm -rf -- "$directory"; }
`;

export class DeadMansSwitch {
  readonly #shell: ChildProcess;
  readonly #pipe: Writable & { unref?(): void };

  /** @param signal ends the server at once, with its own children */
  constructor(directory: string, signal: 'KILL' | 'QUIT') {
    this.#shell = spawn('/bin/sh', ['-c', script, 'sh', directory, signal], {
      cwd: '/',
      // A session of its own: Ctrl-C at the terminal must not end it before its work is done.
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#pipe = this.#shell.stdin as Writable;
    this.#pipe.on('error', () => {});
    this.#pipe.unref?.();
    this.#shell.unref();
  }

  guard(pid: number | undefined): void {
    this.#pipe.write(`${pid ?? ''}\n`);
  }

  /** Releases the shell: it ends what it still guards and removes the directory. Resolves when it is gone. */
  async release(): Promise<void> {
    if (this.#shell.exitCode !== null || this.#shell.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#shell.once('exit', resolve));
    this.#shell.ref();
    this.#pipe.end();
    await gone;
  }
}
