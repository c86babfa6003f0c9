/** Each way of tampering with a file is noticed, and named. */
import { beforeAll, describe, expect, test } from 'vitest';
import { DrawCheck, type DrawReport, MAX_LINE_CHARACTERS } from '../../../../src/queue/draw/draw-check.ts';
import { MAX_ENTRIES } from '../../../../src/queue/draw/drawn-order.ts';
import { commitmentOf } from '../../../../src/queue/draw/seed.ts';
import { linesOf, type MadeDraw, madeDraw } from '../../../support/queue/drawn-file.ts';

const ENTRIES = 100;
const OTHER_HEX = 'c'.repeat(64);

let made: MadeDraw;
let lines: readonly string[];

beforeAll(async () => {
  made = madeDraw(1, ENTRIES);
  lines = await linesOf(made);
});

function check(text: readonly string[], published?: string): DrawReport {
  const checked = new DrawCheck(published);
  for (const line of text) checked.line(line);
  return checked.end();
}

/** What is found, without the messages. */
function found(text: readonly string[], published?: string) {
  const { ok, faults } = check(text, published);
  expect(ok).toBe(faults.length === 0);
  return Object.fromEntries(faults.map(({ code, count }) => [code, count]));
}

const messageOf = (text: readonly string[]) => check(text).faults[0]?.message;

/** The lines with other members in one of them; line 1 is the header. */
function changed(line: number, members: object): string[] {
  return lines.with(line - 1, JSON.stringify({ ...JSON.parse(lines[line - 1]!), ...members }));
}

const entryAt = (line: number) =>
  JSON.parse(lines[line - 1]!) as { rank: number; number: number; digest: string };

describe('a file as it was written', () => {
  test.each([0, 1, 2, 1_001, 2_500])('of %d entries is right', async (entries) => {
    const draw = madeDraw(entries, entries);
    const report = check(await linesOf(draw), draw.commitment);
    expect(report).toMatchObject({ ok: true, vacant: 0, faults: [], header: { version: 1, entries } });
  });

  test('may have numbers that nobody has', async () => {
    const text = await linesOf(madeDraw(2, 10, [3, 10]));
    expect(text.filter((line) => line.endsWith('"digest":null}'))).toHaveLength(2);
    expect(check(text)).toMatchObject({ ok: true, vacant: 2 });
  });

  test('may have empty lines, and line ends of another system', () => {
    expect(found([...lines.map((line) => `${line}\r`), '', ''])).toEqual({});
  });

  test('names every entry by rank, number and digest, and no buyer', () => {
    const first = made.numbers.numberAt(1);
    expect(entryAt(2)).toEqual({ rank: 1, number: first, digest: made.digests[first - 1] });
    expect(lines.join('\n')).not.toContain('buyer');
  });

  test('is not written if a digest is lacking', async () => {
    const lacking = { ...made, digests: made.digests.slice(0, -1) };
    await expect(linesOf(lacking)).rejects.toThrow(`no digest was read for number ${ENTRIES}`);
  });
});

describe('what was tampered with is named', () => {
  const otherSeed = Buffer.from(OTHER_HEX, 'hex');

  test('another seed', () => {
    const seen = found(changed(1, { seed: OTHER_HEX }));
    expect(seen).toEqual({ commitment: 1, rank: expect.any(Number) });
    expect(seen.rank).toBeGreaterThan(ENTRIES / 2);
    expect(messageOf(changed(1, { seed: OTHER_HEX }))).toContain(commitmentOf(otherSeed));
  });

  test('another commitment', () => {
    expect(found(changed(1, { commitment: OTHER_HEX }))).toEqual({ commitment: 1 });
  });

  test('another seed with its commitment: the ranks are not those of the seed', () => {
    const members = { seed: OTHER_HEX, commitment: commitmentOf(otherSeed) };
    expect(found(changed(1, members))).toEqual({ rank: expect.any(Number) });
    expect(found(changed(1, members), made.commitment)).toEqual({ rank: expect.any(Number), published: 1 });
  });

  test('a whole file that was made up: only the published commitment shows it', async () => {
    const forged = await linesOf(madeDraw(9, ENTRIES));
    expect(found(forged)).toEqual({});
    expect(found(forged, made.commitment)).toEqual({ published: 1 });
  });

  test('another sale', () => {
    expect(found(changed(1, { sale: 'other' }))).toEqual({ entries_hash: 1 });
  });

  test('another hash of the entries', () => {
    expect(found(changed(1, { entriesHash: OTHER_HEX }))).toEqual({
      rank: expect.any(Number),
      entries_hash: 1,
    });
  });

  test('swapped ranks, with the lines', () => {
    const [one, other] = [entryAt(5), entryAt(9)];
    const swapped = changed(5, { number: other.number, digest: other.digest });
    swapped[8] = JSON.stringify({ ...other, number: one.number, digest: one.digest });
    expect(found(swapped)).toEqual({ rank: 2 });
    expect(messageOf(swapped)).toBe(`line 5: rank 4 belongs to number ${one.number}, not to ${other.number}`);
  });

  test('swapped lines', () => {
    const swapped = lines.with(4, lines[8]!).with(8, lines[4]!);
    expect(Object.keys(found(swapped))).toEqual(['sequence']);
    expect(messageOf(swapped)).toBe('line 5 has rank 8, and should have 4');
  });

  test('a changed digest', () => {
    expect(found(changed(5, { digest: OTHER_HEX }))).toEqual({ entries_hash: 1 });
    expect(found(changed(5, { digest: null }))).toEqual({ entries_hash: 1 });
  });

  test('a missing entry', () => {
    const report = check(lines.toSpliced(4, 1));
    expect(report.faults).toEqual([
      { code: 'sequence', count: 1, message: 'line 5 has rank 5, and should have 4' },
      { code: 'missing', count: 1, message: `number ${entryAt(5).number} has no line` },
    ]);
  });

  test('an entry that is there twice', () => {
    const twice = check(lines.toSpliced(5, 0, lines[4]!));
    expect(twice.faults).toEqual([
      { code: 'sequence', count: 1, message: 'line 6 has rank 4, and should have 5' },
      { code: 'repeated', count: 1, message: `line 6 has number ${entryAt(5).number} again` },
    ]);
  });

  test('an entry that is there twice, the second time with another digest', () => {
    const again = JSON.stringify({ ...entryAt(5), digest: OTHER_HEX });
    expect(found(lines.toSpliced(5, 0, again))).toEqual({ sequence: 1, repeated: 1 });
    expect(found(lines.toSpliced(4, 0, again))).toEqual({ sequence: 1, repeated: 1, entries_hash: 1 });
  });

  test('a number in the place of another', () => {
    const { number } = entryAt(9);
    expect(found(changed(5, { number }))).toEqual({ rank: 1, repeated: 1, missing: 1 });
  });

  test('an entry that was added', () => {
    const added = JSON.stringify({ rank: ENTRIES + 1, number: ENTRIES + 1, digest: OTHER_HEX });
    expect(found([...lines, added])).toEqual({ entry: 1 });
    expect(found([...changed(1, { entries: ENTRIES + 1 }), added])).toMatchObject({ entries_hash: 1 });
  });

  test('a file that is cut off between two lines', () => {
    expect(found(lines.slice(0, 51))).toEqual({ missing: 50 });
    expect(found(lines.slice(0, 1))).toEqual({ missing: ENTRIES });
  });

  test('a file that is cut off in a line', () => {
    const cut = [...lines.slice(0, 50), lines[50]!.slice(0, 30)];
    expect(found(cut)).toEqual({ not_json: 1, missing: 51 });
    expect(messageOf(cut)).toBe('line 51 is not a JSON object: is the file cut off there?');
  });
});

test('no character can be exchanged for another', async () => {
  const text = (await linesOf(madeDraw(3, 12, [4]))).join('\n');
  const unnoticed: string[] = [];
  for (let i = 0; i < text.length; i++) {
    for (const character of ['0', '1', 'a', ' ', '-', '"', ',', '\n']) {
      if (character === text[i]) continue;
      const other = text.slice(0, i) + character + text.slice(i + 1);
      if (check(other.split('\n')).ok) unnoticed.push(other.slice(i - 20, i + 20));
    }
  }
  expect(unnoticed).toEqual([]);
});

describe('what is no such file is refused', () => {
  test.each([
    ['nothing', []],
    ['empty lines', ['', ' ']],
  ])('%s', (_, text) => {
    expect(check(text)).toEqual({
      ok: false,
      header: undefined,
      vacant: 0,
      faults: [{ code: 'header', message: 'the file is empty', count: 1 }],
    });
  });

  test.each([['not JSON'], ['17'], ['null'], ['"text"'], ['{"version":1']])('%s', (text) => {
    expect(found([text, ...lines.slice(1)])).toEqual({ not_json: 1 });
    expect(found(lines.with(3, text))).toEqual({ not_json: 1, sequence: 1, missing: 1 });
  });

  test('a line that is too long', () => {
    expect(found([lines[0]!.padEnd(MAX_LINE_CHARACTERS), ...lines.slice(1)])).toEqual({});
    const long = `{"rank":1,"padding":"${' '.repeat(MAX_LINE_CHARACTERS)}"}`;
    expect(messageOf([long])).toBe(`line 1 has more than ${MAX_LINE_CHARACTERS} characters`);
  });

  test.each([
    [{ version: 2 }, 'version', 'version is 2, and this program knows 1'],
    [{ version: undefined }, 'version', 'version is missing'],
    [{ sale: 'a b' }, 'header', "sale must be a sale's id"],
    [{ sale: 7 }, 'header', "sale must be a sale's id"],
    [{ seed: OTHER_HEX.toUpperCase() }, 'header', 'seed must be 64 lower-case hexadecimal characters'],
    [{ seed: `${OTHER_HEX}\n` }, 'header', 'seed must be 64 lower-case hexadecimal characters'],
    [{ commitment: 'c' }, 'header', 'commitment must be'],
    [{ entriesHash: null }, 'header', 'entriesHash must be'],
    [{ entries: -1 }, 'header', `entries must be a whole number from 0 to ${MAX_ENTRIES}`],
    [{ entries: 1.5 }, 'header', 'entries must be'],
    [{ entries: '100' }, 'header', 'entries must be'],
    [{ entries: MAX_ENTRIES + 1 }, 'header', 'entries must be'],
  ])('a first line with %j', (members, code, message) => {
    const text = changed(1, members);
    expect(found(text)).toEqual({ [code]: 1 });
    expect(messageOf(text)).toContain(message);
    expect(check(text).header).toBeUndefined();
  });

  test.each([
    [{ rank: 0 }, 'rank must be a whole number from 1 to 100'],
    [{ rank: ENTRIES + 1 }, 'rank must be'],
    [{ rank: '1' }, 'rank must be'],
    [{ number: 0 }, 'number must be a whole number from 1 to 100'],
    [{ number: ENTRIES + 1 }, 'number must be'],
    [{ digest: 'c' }, 'digest must be null or 64 lower-case hexadecimal characters'],
    [{ digest: undefined }, 'digest must be'],
  ])('an entry with %j', (members, message) => {
    const text = changed(5, members);
    expect(found(text)).toEqual({ entry: 1, sequence: 1, missing: 1 });
    expect(messageOf(text)).toContain(`line 5: ${message}`);
  });
});
