/** What the operators' console shows, in a terminal. It reads the same pictures (node/console/console-feed.ts). */
import { Option } from 'commander';
import {
  type ConsolePicture,
  DEFAULT_SHOWN_SALES,
  MAX_SHOWN_SALES,
  parseConsoleQuery,
} from '../../operations/console/console-operations.ts';
import { SALE_STATES } from '../../operations/sale-list.ts';
import { type CommandSpec, NODE_SETTINGS, QUIET } from '../command/command.ts';
import { namingFlags } from '../command/flags.ts';
import { OpsClient } from '../command/ops-client.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { looks } from '../terminal/look.ts';
import { note, print, printJson, visible } from '../terminal/output.ts';
import { hasScreen, Screen } from '../terminal/screen.ts';
import { watchSignals } from '../terminal/signals.ts';
import { pictureLines } from './picture-text.ts';
import { SoldRates } from './sold-rates.ts';
import { type Seen, watch } from './watch.ts';

/** Rates need two pictures. */
const PICTURES_FOR_ONE = 2;
/** The line that says how to leave, or that the connection is lost. */
const STATUS_ROWS = 1;

export const top: CommandSpec = {
  name: 'top',
  summary: 'show sales, orders and refusals per second, and the lag of sync, each second',
  details:
    'Shows what the console shows. Like the console, it needs a running node. Requests, orders, refusals and the lag are those ' +
    'of that node; the figures of a sale are those of the whole shop. `q` or Ctrl-C ends it. Without a terminal, or ' +
    'with --once, it prints one picture after a second, because a rate needs two readings. ' +
    'With --json it prints an object for each picture.',
  options: [
    new Option('--once', 'print one picture, and end'),
    new Option('--state <state>', `only sales in this state: ${SALE_STATES.join(', ')}`),
    new Option(
      '--limit <n>',
      `sales in a picture, the newest, up to ${MAX_SHOWN_SALES}; default ${DEFAULT_SHOWN_SALES}`,
    ),
  ],
  settings: NODE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade top', 'stockade top --once --state open', 'stockade top --json | jq .node.value'],
  async run({ config, json, options: { once, state, limit } }) {
    const query = await namingFlags('the query', top, () => parseConsoleQuery({ state, limit }));
    const client = new OpsClient(config);
    const interruption = watchSignals();
    const end = new AbortController();
    interruption.signal.addEventListener('abort', () => end.abort());
    const pictures = watch(client, query, end.signal);
    try {
      if (once === true || (!json && !hasScreen())) await printOne(pictures, client.url, json);
      else if (json) await printAll(pictures);
      else await show(pictures, client.url, () => end.abort());
    } finally {
      end.abort();
      interruption.release();
      await client.disconnect();
    }
    return EXIT_OK;
  },
};

async function printOne(pictures: AsyncIterable<Seen>, url: string, json: boolean): Promise<void> {
  const sold = new SoldRates();
  let count = 0;
  for await (const seen of pictures) {
    if ('lost' in seen) continue;
    const rates = sold.add(seen.picture);
    if (++count < PICTURES_FOR_ONE) continue;
    if (json) printJson(seen.picture);
    else print(pictureLines(seen.picture, { url, rates }).join('\n'));
    return;
  }
}

async function printAll(pictures: AsyncIterable<Seen>): Promise<void> {
  for await (const seen of pictures) {
    if ('lost' in seen) note(visible(`${new Date().toISOString()} no picture: ${seen.lost}`));
    else printJson(seen.picture);
  }
}

/** Draws each picture, and the last one again when the terminal gets another size. */
async function show(pictures: AsyncIterable<Seen>, url: string, leave: () => void): Promise<void> {
  const sold = new SoldRates();
  const { bold, red } = looks(process.stdout);
  let last: { readonly picture: ConsolePicture; readonly rates: ReadonlyMap<string, number> } | undefined;
  let lost: string | undefined;
  let screen: Screen | undefined;
  const draw = () => {
    if (!screen || !last) return;
    const rows = screen.rows - STATUS_ROWS;
    const lines = pictureLines(last.picture, { url, rates: last.rates, rows, heading: bold });
    const status = lost === undefined ? 'q leaves' : red(visible(`No picture: ${lost}`));
    screen.draw([...lines.slice(0, rows), ...Array(Math.max(0, rows - lines.length)).fill(''), status]);
  };
  try {
    for await (const seen of pictures) {
      // Only now, so that the error of a first attempt is printed where it stays.
      screen ??= new Screen({ leave, resized: draw });
      lost = 'lost' in seen ? seen.lost : undefined;
      if ('picture' in seen) last = { picture: seen.picture, rates: sold.add(seen.picture) };
      draw();
    }
  } finally {
    screen?.[Symbol.dispose]();
  }
}
