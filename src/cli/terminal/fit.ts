/** Fits what is drawn into a terminal. */

const DEFAULT_COLUMNS = 80;

/** The characters of a line of a terminal. */
export function columnsOf(terminal: { readonly columns?: number }): number {
  return terminal.columns || DEFAULT_COLUMNS;
}

/** A sequence that sets how text looks, or one character. */
const PARTS = /\p{Cc}\[[\d;]*m|./gsu;

/** The line, cut to this number of characters. Sequences that set its look stay, and do not count. */
export function cut(line: string, columns: number): string {
  let width = 0;
  let shown = '';
  for (const [part] of line.matchAll(PARTS)) {
    if (part.length > 2) shown += part;
    else if (width++ < columns) shown += part;
  }
  return shown;
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A bar of blocks, filled from the left. @param share 0 to 1 @param width in characters */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  // What is left of a unit must be seen.
  const filled = share > 0 ? Math.max(1, eighths) : 0;
  return ('█'.repeat(Math.floor(filled / 8)) + EIGHTHS[filled % 8]).padEnd(width, '·');
}
