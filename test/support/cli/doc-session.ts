/**
 * The sessions of the Markdown pages, run as a reader pastes them. A session stands between `<!-- session -->` and
 * `<!-- /session -->`: blocks of commands (`sh`), each followed by the block of what it prints (`text`), if it prints
 * anything. All commands of a session run in one shell.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

export interface SessionStep {
  readonly commands: string;
  /** Empty where the page shows no output. */
  readonly printed: string;
}

/** @throws if the page has no session, or shows output that belongs to no commands */
export function sessionOf(page: string): SessionStep[] {
  const [, session] = /<!-- session -->\n(.*?)<!-- \/session -->/s.exec(page) ?? [];
  if (session === undefined) throw new Error('the page has no <!-- session -->');
  const steps: SessionStep[] = [];
  for (const [, language, text] of session.matchAll(/^```(\w*)\n(.*?)^```$/gms)) {
    const last = steps.at(-1);
    if (language === 'sh') steps.push({ commands: text!, printed: '' });
    else if (language === 'text' && last?.printed === '')
      steps[steps.length - 1] = { ...last, printed: text! };
    else throw new Error(`a block "${language}" that follows no commands: ${text}`);
  }
  return steps;
}

const STEP_ENDS = '--- the step ends here ---';

/** The output of each step, stderr included. The shell continues after a command that fails, as a reader's does. */
export async function runSession(
  steps: readonly SessionStep[],
  options: { cwd: string; env: NodeJS.ProcessEnv; timeout: number },
): Promise<string[]> {
  const script = steps.map(({ commands }) => `${commands}\necho '${STEP_ENDS}'\n`).join('');
  const { stdout } = await promisify(execFile)('bash', ['-c', `exec 2>&1\n${script}`], options);
  return stdout.split(`${STEP_ENDS}\n`).slice(0, -1);
}

/** The outputs with times, tokens, pseudonyms and order ids replaced by names, so that two runs are alike if the same ids are in the same places. */
export function comparable(outputs: readonly string[]): string[] {
  const names = new Map<string, string>();
  const nameOf = (id: string) => {
    if (!names.has(id)) names.set(id, `<order ${names.size + 1}>`);
    return names.get(id)!;
  };
  return outputs.map((output) =>
    output
      // A CSV has both.
      .replaceAll('\r\n', '\n')
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>')
      .replaceAll(/"[op]1\.[\w.-]+"/g, '"<token>"')
      .replaceAll(/\berased-[0-9a-f]{16}\b/g, '<pseudonym>')
      .replaceAll(/\b\d{18}\b/g, nameOf)
      .replaceAll(/ +$/gm, ''),
  );
}
