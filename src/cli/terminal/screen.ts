/**
 * The whole terminal, for a picture that is drawn again and again. It has a screen of its own, so that what was there before
 * is back at the end, whatever ends the command.
 */
import { columnsOf, cut } from './fit.ts';

const DEFAULT_ROWS = 24;

// Lines that are too long are cut by the terminal too, because some characters are two columns wide.
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
/** Ctrl-C, as a terminal sends it while no signal is made of it. */
const CTRL_C = '\u0003';

export interface ScreenEvents {
  /** `q` or Ctrl-C was pressed. */
  leave(): void;
  resized(): void;
}

export class Screen implements Disposable {
  readonly #events: ScreenEvents;

  constructor(events: ScreenEvents) {
    this.#events = events;
    process.stdout.write(ENTER);
    process.stdin.setRawMode(true);
    process.stdin.on('data', this.#pressed).resume();
    process.stdout.on('resize', events.resized);
    process.on('exit', this.#restore);
  }

  get rows(): number {
    return process.stdout.rows || DEFAULT_ROWS;
  }

  draw(lines: readonly string[]): void {
    const columns = columnsOf(process.stdout);
    const shown = lines.slice(0, this.rows).map((line) => cut(line, columns) + CLEAR_LINE);
    process.stdout.write(`${HOME}${shown.join('\r\n')}${CLEAR_BELOW}`);
  }

  [Symbol.dispose](): void {
    process.stdin.off('data', this.#pressed).pause();
    process.stdout.off('resize', this.#events.resized);
    process.off('exit', this.#restore);
    this.#restore();
  }

  readonly #pressed = (keys: Buffer) => {
    const text = keys.toString();
    if (text.includes('q') || text.includes(CTRL_C)) this.#events.leave();
  };

  readonly #restore = () => {
    process.stdin.setRawMode(false);
    process.stdout.write(LEAVE);
  };
}

/** Whether a screen can be drawn, and keys be read. */
export function hasScreen(env: NodeJS.ProcessEnv = process.env): boolean {
  return process.stdout.isTTY === true && process.stdin.isTTY === true && env.TERM !== 'dumb';
}
