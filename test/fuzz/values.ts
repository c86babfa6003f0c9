/** Values for the fields of requests: valid and invalid by their schema. */
import fc from 'fast-check';
import type { ApiDescription, Schema } from './description.ts';

/** Times at the limits of ISO 8601, JavaScript and Postgres, and some between them. */
const TIMES = [
  '2026-11-27T20:00:00+01:00',
  '2020-01-01T00:00:00Z',
  '2099-12-31T23:59:59.999999999Z',
  '1970-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '0000-01-01T00:00:00+23:59',
  '0001-01-01T00:00:00+14:00',
  '9999-12-31T23:59:59-23:59',
];

const DEEP = `${'['.repeat(800)}${']'.repeat(800)}`;

/** JSON texts that are invalid for nearly every field. */
const ODD = fc.constantFrom(
  ...['null', 'true', '-1', '-0', '0.5', '1e400', '-1e400', '1e-400', '9007199254740993', '2147483649'],
  ...[
    '"1"',
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"\u202e"',
    '"a\\nb"',
    '[]',
    '[1]',
    '{}',
    '{"__proto__":1}',
    DEEP,
  ],
  ...['18446744073709551616', '"9223372036854775808"', '"1e3"', '"%00"', '"\'; --"', '"\\"}{"'],
  JSON.stringify('x'.repeat(3_000)),
  ...TIMES.map((time) => JSON.stringify(time)),
);

/** JSON text of a valid value. */
export function fitting(api: ApiDescription, unresolved: Schema): fc.Arbitrary<string> {
  const schema = api.resolve(unresolved);
  if ('const' in schema) return fc.constant(JSON.stringify(schema.const));
  if (schema.enum) return fc.constantFrom(...schema.enum.map((value) => JSON.stringify(value)));
  if (schema.oneOf) return fc.oneof(...schema.oneOf.map((one) => fitting(api, one)));
  if (schema.format === 'date-time') return fc.constantFrom(...TIMES).map((time) => JSON.stringify(time));
  if (schema.pattern)
    return fc.stringMatching(new RegExp(schema.pattern)).map((text) => JSON.stringify(text));
  switch ([schema.type].flat()[0]) {
    case 'integer':
      return numbers(schema.minimum ?? 0, schema.maximum ?? 1_000).map(String);
    case 'boolean':
      return fc.constantFrom('true', 'false');
    case 'string':
      return fc
        .string({ unit: 'grapheme', maxLength: Math.min(schema.maxLength ?? 20, 20) })
        .map((text) => JSON.stringify(text));
    default:
      return members(api, schema).map(objectText);
  }
}

/** Mostly small numbers: a sale of a thousand segments tests no more than one of four, and takes long to create. */
function numbers(least: number, most: number): fc.Arbitrary<number> {
  const few = fc.integer({ min: least, max: Math.min(most, least + 5) });
  return fc.oneof({ weight: 12, arbitrary: few }, { weight: 1, arbitrary: fc.constant(most) });
}

type Member = readonly [name: string, text: string];

function members(api: ApiDescription, schema: Schema): fc.Arbitrary<Member[]> {
  const all = Object.entries(schema.properties ?? {}).map(([name, of]) => {
    const member = fitting(api, of).map((text): Member => [name, text]);
    return schema.required?.includes(name) ? member : fc.option(member, { nil: undefined });
  });
  return fc.tuple(...all).map((found) => found.filter((member) => member !== undefined));
}

function objectText(members: readonly Member[]): string {
  return `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`;
}

type Change = (members: Member[], at: number, odd: string) => Member[];

/** Ways to corrupt the members of an object. */
const CHANGES: readonly Change[] = [
  (of, at) => of.filter((_, i) => i !== at),
  (of, at, odd) => of.map((member, i) => (i === at ? [member[0], odd] : member)),
  (of, at, odd) => [...of, [of[at]?.[0] ?? 'twice', odd]],
  (of, _, odd) => [...of, ['unheard-of', odd]],
  (of, _, odd) => [...of, ['__proto__', odd]],
  (of, at) => of.map(([name, text], i) => (i === at ? [name.toUpperCase(), text] : [name, text])),
];

/** Ways to corrupt a whole text. */
const SPOILS: readonly ((text: string) => string)[] = [
  (text) => text.slice(0, -1),
  (text) => `${text}${text}`,
  (text) => `[${text}]`,
  (text) => `\u00ef\u00bb\u00bf${text}`,
  (text) => `${text}\0`,
  (text) => text.replace('"', '"\u00ff'),
  (text) => text.padEnd(5_000, ' '),
  (text) => text.padEnd(70_000, ' '),
  () => '',
  () => 'null',
  () => DEEP,
  (text) => text.replaceAll('"', "'"),
];

/** Bodies for a schema: valid, with wrong members, or corrupted as a whole. In Latin-1: each character is a byte. */
export function bodies(api: ApiDescription, unresolved: Schema): fc.Arbitrary<string> {
  const schema = api.resolve(unresolved);
  const variants = (schema.oneOf ?? [schema]).map((one) => members(api, api.resolve(one)));
  const right = fc.oneof(...variants);
  const wrong = fc
    .tuple(right, fc.constantFrom(...CHANGES), fc.nat(9), ODD)
    .map(([of, change, at, odd]) => change(of, at % Math.max(1, of.length), odd));
  const utf8 = (of: readonly Member[]) => Buffer.from(objectText(of)).toString('latin1');
  const spoilt = fc.tuple(right.map(utf8), fc.constantFrom(...SPOILS)).map(([text, spoil]) => spoil(text));
  return fc.oneof(
    { weight: 6, arbitrary: right.map(utf8) },
    { weight: 3, arbitrary: wrong.map(utf8) },
    { weight: 1, arbitrary: spoilt },
  );
}
