/** A command in a pseudo-terminal, as a person runs it: with keys, and a size that may change. `script` makes the terminal. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mainProgram } from '../nodes/build.ts';
import { until } from '../until.ts';
import type { CliOptions } from './cli.ts';

/** That of Linux; the one of macOS has other options. */
const SCRIPT = '/usr/bin/script';
export const hasTerminals = process.platform === 'linux' && existsSync(SCRIPT);

const LIMIT_MS = 100_000;

export interface TerminalOptions extends CliOptions {
  readonly columns?: number;
  readonly rows?: number;
}

export class Terminal implements AsyncDisposable {
  /** Everything that was written to the terminal so far. */
  shown = '';
  /** The exit code of the command. */
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;

  /** @param command a line for a shell. The terminal's stderr and stdout are one. */
  constructor(command: string, { env = {}, cwd, columns = 80, rows = 24 }: TerminalOptions = {}) {
    const line = `tty; stty cols ${columns} rows ${rows}; ${command}`;
    this.#child = spawn(SCRIPT, ['-qec', line, '/dev/null'], {
      env: { PATH: process.env.PATH, TERM: 'xterm', LANG: 'C.UTF-8', SHELL: '/bin/bash', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
      ...(cwd === undefined ? {} : { cwd }),
    });
    this.#child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.shown += text;
    });
    this.ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Waits until the terminal shows this. */
  sees(text: string | RegExp): Promise<unknown> {
    const isShown = () => (typeof text === 'string' ? this.shown.includes(text) : text.test(this.shown));
    return until(isShown, { what: `the terminal shows ${text}`, timeoutMs: LIMIT_MS }).catch((error) => {
      throw new Error(`${error.message}; it shows:\n${this.shown}`);
    });
  }

  /** Forgets what was shown. */
  clear(): void {
    this.shown = this.shown.slice(0, 0);
  }

  press(keys: string): void {
    this.#child.stdin!.write(keys);
  }

  /** Call it before `clear`: the terminal's name is its first line. */
  resizer(): (columns: number, rows: number) => void {
    const name = /^(\/dev\/\S+)\r\n/.exec(this.shown)![1]!;
    return (columns, rows) => {
      execFileSync('stty', ['-F', name, 'cols', String(columns), 'rows', String(rows)]);
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Hanging up the terminal ends what runs in it.
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}

/** A line for `Terminal` that runs this command of Stockade. */
export function stockade(args: string): string {
  return `exec '${process.execPath}' '${mainProgram}' ${args}`;
}
