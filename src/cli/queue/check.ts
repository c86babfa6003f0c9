import { Option } from 'commander';
import { DrawCheck, type DrawReport, MAX_LINE_CHARACTERS } from '../../queue/draw/draw-check.ts';
import { isHex } from '../../queue/draw/draw-file.ts';
import type { CommandSpec } from '../command/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../terminal/explain.ts';
import { number, plural, print, printJson } from '../terminal/output.ts';
import { linesOfFile } from './lines-of-file.ts';

export const checkQueue: CommandSpec = {
  name: 'check <file>',
  summary: "check the file of a queue's draw: seed, entries and every rank",
  details:
    'It needs no node, no store and no settings. With `-` it reads its standard input. The file can show that its seed and its entries give this order. It cannot ' +
    'show when its commitment was published: compare that with the one that you saw before the draw, or give it as ' +
    '--commitment.',
  options: [new Option('--commitment <hex>', 'the commitment that the shop published before the draw')],
  settings: [],
  examples: [
    'stockade queue check draw.ndjson',
    'curl -s https://shop.example/draw.ndjson | stockade queue check -',
    'stockade queue check draw.ndjson --commitment 6e34…',
  ],
  async run({ json, args, options }) {
    const file = args[0]!;
    const { commitment } = options as { commitment?: string };
    if (commitment !== undefined && !isHex(commitment))
      throw new UsageError(
        `--commitment is "${commitment}", but must be 64 lower-case hexadecimal characters`,
      );
    const check = new DrawCheck(commitment);
    for await (const line of linesOfFile(file, MAX_LINE_CHARACTERS)) check.line(line);
    const report = check.end();
    const isCompared = commitment !== undefined;
    if (json) printJson(jsonOf(file, report, isCompared));
    else print(report.ok ? proof(report, isCompared) : faults(file, report));
    return report.ok ? EXIT_OK : EXIT_FAILED;
  },
};

function jsonOf(file: string, { ok, header, vacant, faults }: DrawReport, isCompared: boolean): object {
  if (header === undefined) return { file, ok, faults };
  const { sale, commitment, seed, entries, entriesHash } = header;
  return { file, ok, sale, commitment, isCompared, seed, entries, vacant, entriesHash, faults };
}

function proof({ header, vacant }: DrawReport, isCompared: boolean): string {
  const { sale, commitment, entries, entriesHash } = header!;
  return [
    `${sale}: the draw is right, ${plural(entries, 'number')}${vacant === 0 ? '' : `, ${number(vacant)} of them nobody's`}`,
    `  the seed belongs to the commitment ${commitment}`,
    `  the digests have the hash ${entriesHash}`,
    '  each rank is where seed and hash put it',
    isCompared
      ? '  the commitment is the one that you gave'
      : 'Compare the commitment with the one that you saw before the draw, because a file can be made up as a whole.',
  ].join('\n');
}

function faults(file: string, { header, faults }: DrawReport): string {
  return [
    `${header?.sale ?? file}: the draw is not proven`,
    ...faults.map(({ code, message, count }) => {
      return `  ${code}: ${message}${count > 1 ? ` (the first of ${number(count)})` : ''}`;
    }),
  ].join('\n');
}
