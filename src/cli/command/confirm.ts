/**
 * Asks before a command does what can't be undone, or what buyers feel at once. At a terminal it says what will happen, with the figures of this moment,
 * and goes on only after "y". Without a terminal nobody can be asked: the command does it only with `--yes`, or with another
 * flag that says as much. What can't be done is refused before: nobody is asked, or told to add `--yes`, for nothing.
 */
import { createInterface } from 'node:readline';
import { Option } from 'commander';
import { StockadeError } from '../../engine/errors.ts';
import { Interrupted, NotConfirmed } from '../terminal/explain.ts';
import { lines, note } from '../terminal/output.ts';

export const YES_OPTION = new Option('--yes', "don't ask, although it can't be undone");

const NOTHING_CHANGED = 'nothing was changed';

/**
 * Asks, and returns if the answer is yes.
 * @param tell returns what will happen, a sentence each. None: nothing will, and nothing is asked. It is not called if a flag
 * agrees.
 * @throws StockadeError `declined`, Interrupted; NotConfirmed if nobody can be asked, and no flag agrees; what `tell` throws
 */
export type Confirm = (tell: () => readonly string[] | Promise<readonly string[]>) => Promise<void>;

export interface Confirmation {
  /** Another flag of the command line agrees already; a person is asked all the same. */
  readonly saysSo?: boolean | undefined;
  /** It can't be undone. Default: true. */
  readonly isFinal?: boolean;
}

/** @param title what the command does: "close tickets" */
export function confirmation(
  title: string,
  { yes }: Readonly<Record<string, unknown>>,
  { saysSo = false, isFinal = true }: Confirmation = {},
): Confirm {
  if (yes === true) return async () => {};
  const canAsk = process.stdin.isTTY && process.stderr.isTTY;
  if (!canAsk && saysSo) return async () => {};
  return async (tell) => {
    const told = await tell();
    if (told.length === 0) return;
    if (!canAsk) {
      throw new NotConfirmed(
        `nobody can be asked whether to ${title}, because there is no terminal${isFinal ? ". It can't be undone" : ''}, so nothing was changed: add --yes to do it`,
      );
    }
    note(lines([`About to ${title}:`, ...told.map((line) => `  - ${line}`)]));
    const answer = await answerTo(`${isFinal ? "This can't be undone. " : ''}Go on? [y/N] `);
    if (!/^y(es)?$/i.test(answer.trim()))
      throw new StockadeError('declined', `not confirmed: ${NOTHING_CHANGED}`);
  };
}

/** The line that is typed; empty if the input ends. @throws Interrupted at Ctrl-C */
async function answerTo(question: string): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise((resolve, reject) => {
      const endLine = () => process.stderr.write('\n');
      reader.once('SIGINT', () => {
        endLine();
        reject(new Interrupted('SIGINT', NOTHING_CHANGED));
      });
      reader.once('close', () => {
        endLine();
        resolve('');
      });
      reader.question(question, (answer) => {
        reader.removeAllListeners('close');
        resolve(answer);
      });
    });
  } finally {
    reader.removeAllListeners('close');
    reader.close();
  }
}
