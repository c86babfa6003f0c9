/** What the parts of the page make their elements and texts with. */

export const $ = (id) => document.getElementById(id);

/** Changes the text only if it is another one, so that a screen reader says it once. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function button(text, onClick) {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = text;
  made.addEventListener('click', onClick);
  return made;
}

export function softText(said) {
  const made = document.createElement('p');
  made.className = 'soft';
  made.textContent = said;
  return made;
}

/** Says how something ended. @param again what the button "Try again" does, if the words allow that */
export function showOutcome({ tone, title, text, again: mayRepeat }, outcome = {}, again = undefined) {
  const box = document.createElement('div');
  box.className = tone;
  const heading = document.createElement('h2');
  heading.textContent = title;
  const said = document.createElement('p');
  said.textContent = typeof text === 'function' ? text(outcome) : text;
  box.append(heading, said);
  if (mayRepeat && again) box.append(button('Try again', again));
  $('outcome').replaceChildren(box);
}

export function duration(ms) {
  const seconds = Math.ceil(ms / 1_000);
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(seconds / unit));
  if (days > 0) return `${days} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}
