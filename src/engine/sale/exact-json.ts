/** A double has at most 17 digits, 24 characters with all signs. A longer text may have zeros more. */
const MAX_NUMBER_CHARACTERS = 100;
const MAX_DIGITS = 17;
/** A number that is written like this is never rounded. */
const SHORT = /^-?[\d.]{1,15}$/;
/** Strings, so that digits in them are left alone; and numbers. */
const STRING_OR_NUMBER = /"(?:[^"\\]+|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
/** `JSON.parse` makes Infinity of it. */
const TOO_LARGE = '1e999';

/**
 * As `JSON.parse`, but a number that JavaScript would round is Infinity here. No check of a number allows that, so nobody
 * stores another number than the one that was sent.
 * @throws SyntaxError
 */
export function parseExactly(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const exact = text.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') || isExact(token) ? token : TOO_LARGE,
  );
  return exact === text ? value : JSON.parse(exact);
}

/** Many programs write 0.1 as 0.10000000000000001: that is the same double, with all of its digits. */
function isExact(token: string): boolean {
  if (SHORT.test(token)) return true;
  if (token.length > MAX_NUMBER_CHARACTERS) return false;
  const [given, number] = [decimalOf(token), Number(token)];
  if (given === decimalOf(String(number))) return true;
  const digits = given.indexOf('e');
  return digits <= MAX_DIGITS && given === decimalOf(number.toPrecision(digits));
}

/** The same for all ways to write a number: its digits without zeros around them, and their exponent. */
function decimalOf(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  return `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
