/** How a bench ends: the result on stdout, errors on stderr, and an exit code. */
import { note, print, printJson } from '../../src/cli/terminal/output.ts';
import { BenchFailure } from './failure.ts';

export interface BenchResult {
  readonly json: object;
  readonly text: string;
}

/** Prints one object on stdout with `json`, else text. Sets the exit code to 1 if the bench throws. */
export async function runBench(json: boolean, bench: () => Promise<BenchResult>): Promise<void> {
  try {
    const result = await bench();
    if (json) printJson(result.json);
    else print(result.text);
  } catch (error) {
    process.exitCode = 1;
    const message = error instanceof Error ? error.message : String(error);
    if (json) printJson({ error: message });
    if (error instanceof BenchFailure) note(`The bench failed: ${message}`);
    else console.error('The bench failed:', error);
  }
}
