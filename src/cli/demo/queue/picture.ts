/** The picture of a sale with a queue at the terminal: the stock, where the people are, and one of them. */
import { bar } from '../../terminal/fit.ts';
import { type Looks, looks } from '../../terminal/look.ts';
import { number } from '../../terminal/output.ts';
import { hasRoomFor, Sketch } from '../../terminal/sketch.ts';
import { type Standing, unitsFree } from './standing.ts';

const MAX_BAR_WIDTH = 48;
/** Columns beside a bar: the name, the number, and one that stays free. */
const BESIDE_BAR = 24;
/** The picture, and what the demo prints around it. */
const LINES = 14;

export function canDrawQueue(): boolean {
  return hasRoomFor(LINES);
}

/** @param buyers of the crowd */
export function queueLines(standing: Standing, buyers: number, look: Looks, columns: number): string[] {
  const { stock, opensInMs, waiting, hopeless, offered, bought, givenBack, lapsed } = standing;
  const width = Math.max(1, Math.min(MAX_BAR_WIDTH, columns - BESIDE_BAR));
  const line = (name: string, count: number, most: number, colour: (text: string) => string) =>
    `${name.padEnd(14)}${number(count).padStart(6)}  ${colour(bar(count / most, width))}`;
  const people = (name: string, count: number, colour: (text: string) => string) =>
    line(name, count, Math.max(buyers, count), colour);
  const isOpen = opensInMs === 0;
  const when = isOpen ? 'The sale is open.' : `The sale opens in ${Math.ceil(opensInMs / 1_000)} s.`;
  return [
    look.bold(when),
    line('units free', unitsFree(standing), stock, look.green),
    line('units offered', offered, stock, look.yellow),
    line('units sold', bought, stock, look.green),
    '',
    people(isOpen ? 'waiting' : 'in the lobby', waiting, look.yellow),
    people('no chance now', hopeless, look.red),
    `${number(givenBack)} gave their offer back, ${number(lapsed)} let it lapse: the next in the queue get those units.`,
    '',
    look.bold(shownText(standing)),
  ];
}

function shownText({ shown }: Standing): string {
  if (!shown) return 'One of them has not come yet.';
  const who = `One of them, place ${number(shown.number)}:`;
  switch (shown.state) {
    case 'waiting':
      if (shown.rank === undefined) return `${who} in the draw, which is made when the sale opens`;
      return `${who} ${number(shown.ahead ?? 0)} ${shown.ahead === 1 ? 'person is' : 'people are'} ahead`;
    case 'hopeless':
      return `${who} as things are, nothing will be left`;
    case 'offered':
      return `${who} it has an offer`;
    case 'bought':
      return `${who} it has bought`;
    default:
      return `${who} ${shown.state}`;
  }
}

/** Draws each standing over the one before. The last one stays. */
export class QueuePicture implements Disposable {
  readonly #sketch = new Sketch();
  readonly #look = looks(process.stderr);

  draw(standing: Standing, buyers: number): void {
    this.#sketch.draw(queueLines(standing, buyers, this.#look, this.#sketch.columns));
  }

  [Symbol.dispose](): void {
    this.#sketch[Symbol.dispose]();
  }
}
