/** Some lines on stderr that are drawn again and again in the same place. The last drawing stays. */
import { columnsOf, cut } from './fit.ts';

const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';
const CLEAR_BELOW = '\u001b[J';

export class Sketch implements Disposable {
  #height = 0;

  constructor() {
    process.stderr.write(HIDE_CURSOR);
    process.on('exit', showCursor);
  }

  get columns(): number {
    return columnsOf(process.stderr);
  }

  draw(lines: readonly string[]): void {
    const up = this.#height === 0 ? '' : `\u001b[${this.#height}A\r`;
    // A line that reaches the last column may wrap.
    const shown = lines.map((line) => `${cut(line, this.columns - 1)}\n`).join('');
    process.stderr.write(`${up}${CLEAR_BELOW}${shown}`);
    this.#height = lines.length;
  }

  [Symbol.dispose](): void {
    process.off('exit', showCursor);
    showCursor();
  }
}

function showCursor(): void {
  process.stderr.write(SHOW_CURSOR);
}

/** Whether this number of lines can be drawn in one place. */
export function hasRoomFor(lines: number, env: NodeJS.ProcessEnv = process.env): boolean {
  const { isTTY, rows } = process.stderr;
  return isTTY === true && env.TERM !== 'dumb' && (!rows || rows > lines);
}
