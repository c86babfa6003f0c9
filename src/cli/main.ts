#!/usr/bin/env node
import { Console } from 'node:console';
import { runCommandLine } from './command-line.ts';
import { EXIT_OK } from './terminal/explain.ts';

// Stdout is for results: what a library prints of its own accord goes where remarks go.
globalThis.console = new Console(process.stderr, process.stderr);

// `stockade sale list | head -1`: the reader has gone, which is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT_OK);
  throw error;
});

const exitCode = await runCommandLine(process.argv, process.env);
// Whatever a failed start has left open must not keep the process: all that was to be said has been said.
process.stdout.write('', () => process.exit(exitCode));
