/** Runs a command line and returns its exit code. Errors are printed, never thrown. */
import { inspect } from 'node:util';
import { runProgram } from './program.ts';
import { type ExitCode, explain } from './terminal/explain.ts';
import { note, printJson, visible } from './terminal/output.ts';

/** @param argv as `process.argv`: the command begins at the third element */
export async function runCommandLine(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<ExitCode> {
  try {
    return await runProgram(argv, env);
  } catch (error) {
    const { exitCode, lines, json } = explain(error);
    for (const line of lines) note(visible(line));
    if (lines.length > 0 && wantsStacks(argv, env)) note(inspect(error));
    if (json && argv.includes('--json')) printJson(json);
    return exitCode;
  }
}

/** A stack trace helps developers of Stockade; its users need only the message. */
function wantsStacks(argv: readonly string[], env: NodeJS.ProcessEnv): boolean {
  const flag = argv.lastIndexOf('--log-level');
  const level = flag === -1 ? env.LOG_LEVEL : argv[flag + 1];
  return level === 'debug' || level === 'trace';
}
