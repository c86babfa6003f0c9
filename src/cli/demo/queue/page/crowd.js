/** The card about the crowd: the stock, and where the people are. The demo tells both (`GET crowd`). */

const EVERY_MS = 500;
/** A name, the colour of its bar, and its number. Bars of units are as long as the stock, bars of people as long as the crowd. */
const UNITS = [
  ['Free', 'info', ({ stock, bought, offered }) => Math.max(0, stock - bought - offered)],
  ['Offered', 'warn', ({ offered }) => offered],
  ['Sold', 'good', ({ bought }) => bought],
];
const PEOPLE = [
  ['Waiting', 'info', ({ waiting }) => waiting],
  ['Have an offer', 'warn', ({ offered }) => offered],
  ['Have bought', 'good', ({ bought }) => bought],
  ['Gave it back', 'info', ({ givenBack }) => givenBack],
  ['Let it lapse', 'info', ({ lapsed }) => lapsed],
  ['No chance now', 'bad', ({ hopeless }) => hopeless],
];

const LEGEND =
  '“No chance now”: the people ahead could take all units that are left. Those behind still wait, in case others give their offers back.';
const LEGEND_AT_END = '“No chance now”: they waited until the sale was over, and got nothing.';

const made = (name, className, text = '') => {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
};

const card = made('section', 'card');
card.id = 'crowd';
card.setAttribute('aria-labelledby', 'crowd-title');
const title = made('h2', '', 'The sale and its crowd');
title.id = 'crowd-title';
const when = made('p', 'soft', 'Starting …');
const verdict = made('p', 'verdict');
verdict.setAttribute('role', 'status');
verdict.hidden = true;
const legend = made('p', 'soft', LEGEND);
const units = UNITS.map(meter);
const people = PEOPLE.map(meter);
card.append(
  ...[title, when, made('h3', '', 'Units'), ...units.map(({ row }) => row)],
  ...[made('h3', '', 'People'), ...people.map(({ row }) => row), legend, verdict],
);
document.querySelector('main').append(card);

function meter([name, tone, countOf]) {
  const row = made('p', `meter ${tone}`);
  const bar = made('span', 'bar');
  const fill = made('span', 'fill');
  fill.style.display = 'block';
  bar.append(fill);
  const count = made('strong', '', '0');
  row.append(made('span', '', name), bar, count);
  return {
    row,
    show(standing, most) {
      const value = countOf(standing);
      count.textContent = value.toLocaleString();
      fill.style.width = `${most > 0 ? (100 * value) / most : 0}%`;
    },
  };
}

function show(standing) {
  const { stock, opensInMs, waiting, hopeless, offered, bought, givenBack, lapsed } = standing;
  const everybody = waiting + hopeless + offered + bought + givenBack + lapsed;
  for (const each of units) each.show(standing, stock);
  for (const each of people) each.show(standing, everybody);
  if (standing.verdict) when.textContent = 'It is over.';
  else if (opensInMs > 0)
    when.textContent = `The lobby: the sale opens in ${Math.ceil(opensInMs / 1_000)} s. Get a place among them.`;
  else when.textContent = 'The sale is open. What is given back or lapses goes to the next.';
  verdict.hidden = !standing.verdict;
  if (!standing.verdict) return;
  legend.textContent = LEGEND_AT_END;
  verdict.classList.add(standing.verdict.holds ? 'good' : 'bad');
  if (verdict.textContent !== standing.verdict.text) verdict.textContent = standing.verdict.text;
}

async function look() {
  try {
    const answer = await fetch('crowd');
    const standing = await answer.json();
    if (standing.stock !== undefined) show(standing);
  } catch {
    when.textContent = 'The demo has ended: its shop can’t be reached any more.';
    // Nobody keeps a place in a shop that is gone, and there is nothing to connect to again.
    document.body.classList.add('has-ended');
    return;
  }
  setTimeout(look, EVERY_MS);
}

await look();
