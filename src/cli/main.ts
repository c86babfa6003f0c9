import { Console } from 'node:console';
import { runCommandLine } from './command-line.ts';
import { EXIT_FAILED, EXIT_OK } from './terminal/explain.ts';
import { isLeftToCommand, isOutputNeededWhole, note } from './terminal/output.ts';
import { endIfTerminalClosed } from './terminal/signals.ts';

// Stdout is for results only, so what a library prints goes to stderr.
globalThis.console = new Console(process.stderr, process.stderr);

function stopWriting(error: NodeJS.ErrnoException): never {
  const isClosed = error.code === 'EPIPE';
  // `stockade sale list | head -1` closes the pipe early, which is not an error.
  if (isClosed && !isOutputNeededWhole()) process.exit(EXIT_OK);
  note(
    isClosed
      ? 'error: the output is not complete: its reader has closed stdout'
      : `error: stdout can't be written: ${error.message}`,
  );
  process.exit(EXIT_FAILED);
}

process.stdout.on('error', (error) => {
  if (!isLeftToCommand(error)) stopWriting(error);
});
// Remarks that nobody reads any more must not end what the command does.
process.stderr.on('error', () => {});

// Until the command has ended: if nothing is left to wait for before that, it has failed.
process.exitCode = EXIT_FAILED;
void runCommandLine(process.argv, process.env).then((exitCode) => {
  endIfTerminalClosed();
  // Exits even if a failed start has left something open. The write lets stdout be flushed first.
  process.stdout.write('', (error) =>
    error ? stopWriting(process.stdout.errored ?? error) : process.exit(exitCode),
  );
});
