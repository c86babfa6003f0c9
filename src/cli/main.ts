#!/usr/bin/env node
import { Console } from 'node:console';
import { inspect } from 'node:util';
import { runProgram } from './program.ts';
import { EXIT_OK, type ExitCode, explain } from './terminal/explain.ts';
import { note, printJson, visible } from './terminal/output.ts';

async function main(): Promise<ExitCode> {
  try {
    return await runProgram(process.argv);
  } catch (error) {
    const { exitCode, lines, json } = explain(error);
    for (const line of lines) note(visible(line));
    if (lines.length > 0 && wantsStacks()) note(inspect(error));
    if (json && process.argv.includes('--json')) printJson(json);
    return exitCode;
  }
}

/** A stack trace helps who works on Stockade; whoever runs it needs the sentence. */
function wantsStacks(): boolean {
  const flag = process.argv.lastIndexOf('--log-level');
  const level = flag === -1 ? process.env.LOG_LEVEL : process.argv[flag + 1];
  return level === 'debug' || level === 'trace';
}

// Stdout is for results: what a library prints of its own accord goes where remarks go.
globalThis.console = new Console(process.stderr, process.stderr);

// `stockade sale list | head -1`: the reader has gone, which is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT_OK);
  throw error;
});

const exitCode = await main();
// Whatever a failed start has left open must not keep the process: all that was to be said has been said.
process.stdout.write('', () => process.exit(exitCode));
