/** Equivalent mutants of SQL, in strings and in the migrations (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

const LEAVE = 'src/postgres/migrations/029-in-time.sql';
const BATCH = 'src/postgres/migrations/025-many-sales.sql';
const PLACES = 'src/postgres/migrations/038-places-within-limit.sql';
const OPENING = 'src/postgres/migrations/037-opening-and-pace.sql';

export const SQL: readonly Equivalent[] = [
  {
    file: PLACES,
    line: 22,
    mutator: 'OrderDropped',
    original: 'ORDER BY n.at',
    replacement: '',
    why: 'LATERAL with LIMIT is a nested loop, which keeps the order of the list that comes first',
  },
  {
    file: PLACES,
    line: 33,
    mutator: 'OrderDropped',
    original: 'ORDER BY n.at',
    replacement: '',
    why: 'as in line 22',
  },
  {
    file: PLACES,
    line: 46,
    mutator: 'OrderDropped',
    original: 'ORDER BY page',
    replacement: '',
    why: 'as in line 22',
  },
  ...[25, 55].map(
    (line): Equivalent => ({
      ...{ file: PLACES, line, mutator: 'NumberShifted', original: '1', replacement: '2' },
      why: 'by a unique index a buyer has one such place at most: the limit is there for the plan',
    }),
  ),
  {
    ...{ file: PLACES, line: 51, mutator: 'ComparisonShifted', original: '<', replacement: '<=' },
    why: 'if all places are new, none has a number up to the last one before',
  },
  {
    ...{ file: LEAVE, line: 29, mutator: 'NumberShifted', original: '1', replacement: '2' },
    why: 'two attempts are enough: the first locks the place if that has got an offer meanwhile',
  },
  {
    ...{ file: LEAVE, line: 29, mutator: 'NumberShifted', original: '3', replacement: '4' },
    why: 'as above: a fourth attempt finds what the third has found',
  },
  {
    file: OPENING,
    line: 13,
    mutator: 'StatementDropped',
    original: 'RETURN NULL',
    replacement: 'NULL',
    why: 'without offers the rest changes no row and returns null too',
  },
  {
    ...{ file: BATCH, line: 28, mutator: 'ComparisonShifted', original: '>', replacement: '>=' },
    why: 'without orders the statement inserts nothing',
  },
  {
    ...{ file: BATCH, line: 82, mutator: 'ComparisonShifted', original: '>', replacement: '>=' },
    why: 'with the limit 1 the unique index has refused a second order before',
  },
];
