import { Console } from 'node:console';
import { runCommandLine } from './command-line.ts';
import { EXIT_OK } from './terminal/explain.ts';

// Stdout is for results only, so what a library prints goes to stderr.
globalThis.console = new Console(process.stderr, process.stderr);

// `stockade sale list | head -1` closes the pipe early, which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT_OK);
  throw error;
});

void runCommandLine(process.argv, process.env).then((exitCode) => {
  // Exits even if a failed start has left something open. The write lets stdout be flushed first.
  process.stdout.write('', () => process.exit(exitCode));
});
