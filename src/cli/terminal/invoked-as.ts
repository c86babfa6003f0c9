/** How this program was started, for the commands that its messages advise: run from a clone, it is not on the PATH. */
import { basename, delimiter, dirname, relative, resolve, sep } from 'node:path';

const NAME = 'stockade';

/** The name of this package. On npm, `stockade` is another package, which npx would fetch. */
const PACKAGE = '@stockade-engine/stockade';

/** `stockade`, or the call of npx, or `node dist/cli/main.js` with the path from the current folder. */
export function invokedAs(
  script = process.argv[1] ?? NAME,
  env: NodeJS.ProcessEnv = process.env,
  cwd = process.cwd(),
): string {
  const isCommand = basename(script) === NAME;
  // npx puts the program on the PATH of this process, not on that of the next shell.
  if (isCommand && env.npm_command === 'exec')
    return script.includes(`${sep}_npx${sep}`) ? `npx ${PACKAGE}` : `npx --no ${NAME}`;
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  if (isCommand && folders.some((folder) => resolve(folder) === dirname(script))) return NAME;
  const fromHere = relative(cwd, script);
  return `node ${shellWord(fromHere.startsWith('..') ? script : fromHere)}`;
}

export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
