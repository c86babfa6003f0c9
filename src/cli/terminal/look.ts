/** Bold and coloured text, where the terminal has it and the user wants it (https://no-color.org). */
export type Look = (text: string) => string;

export interface Looks {
  readonly bold: Look;
  readonly green: Look;
  readonly yellow: Look;
  readonly red: Look;
}

export function looks(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): Looks {
  const isPlain = stream.isTTY !== true || env.TERM === 'dumb' || Boolean(env.NO_COLOR);
  const look = (code: number): Look =>
    isPlain ? (text) => text : (text) => `\u001b[${code}m${text}\u001b[0m`;
  return { bold: look(1), green: look(32), yellow: look(33), red: look(31) };
}
