import { once } from 'node:events';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK, UsageError } from '../terminal/explain.ts';
import { needWholeOutput } from '../terminal/output.ts';

export const drawFile: CommandSpec = {
  name: 'draw <sale>',
  summary: 'write the file that proves the draw of a queue, once it is drawn',
  details:
    'The file has the seed, and a line for each place in the drawn order: its number, and a digest of its buyer that nobody else ' +
    'can read. It is complete if the exit code is 0. Publish it: anybody can check it with `stockade queue check`.',
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade queue draw tickets > draw.ndjson', 'stockade queue check draw.ndjson'],
  async run({ config, log, json, args }) {
    if (json) throw new UsageError('leave --json out: the file has JSON in each of its lines');
    needWholeOutput();
    await withOperations({ config, log }, async ({ queues }) => {
      for await (const piece of await queues.drawFile(args[0]!))
        if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
    });
    return EXIT_OK;
  },
};
