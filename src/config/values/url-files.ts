import { accessSync, constants } from 'node:fs';

/** Which of the files that these parameters of a URL name can't be read, and why; `undefined` if all can. */
export function unreadable(text: string, names: readonly string[]): string | undefined {
  const { searchParams } = new URL(text);
  for (const name of names) {
    const file = searchParams.get(name);
    if (file === null) continue;
    try {
      accessSync(file, constants.R_OK);
    } catch (error) {
      return `names a ${name} that can't be read: ${file} (${(error as NodeJS.ErrnoException).code})`;
    }
  }
  return undefined;
}
