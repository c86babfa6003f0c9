/** The catalogue: every strategy, in the order of docs/catalogue.md. */

import { b1 } from './locked/b1-get-check-set.ts';
import { b2 } from './locked/b2-get-set-in-mutex.ts';
import { b3 } from './locked/b3-setnx.ts';
import { b4 } from './locked/b4-expiry-plain-del.ts';
import { b5 } from './locked/b5-token-get-then-del.ts';
import { b6 } from './locked/b6-compare-and-delete.ts';
import { b7 } from './locked/b7-watchdog.ts';
import { b8 } from './locked/b8-fencing-token.ts';
import { b9 } from './locked/b9-failover.ts';
import { b10 } from './locked/b10-quorum.ts';
import { b11 } from './locked/b11-zookeeper.ts';
import { b12 } from './locked/b12-advisory-lock.ts';
import { b13AfterCommit } from './locked/b13-after-commit.ts';
import { b13BeforeCommit } from './locked/b13-before-commit.ts';
import { e1 } from './order-ids/e1-counter-ids.ts';
import { e2 } from './order-ids/e2-stockade-ids.ts';
import type { NamingRow, Row, SellingRow } from './parts/contract.ts';
import { c1 } from './redis/c1-incident.ts';
import { c2 } from './redis/c2-atomic-decrement.ts';
import { c3 } from './redis/c3-script.ts';
import { c4 } from './redis/c4-stock-per-node.ts';
import { d1 } from './segments/d1-lock-per-segment.ts';
import { d2 } from './segments/d2-script-per-segment.ts';
import { d3 } from './segments/d3-stockade.ts';
import { a1 } from './sql-row/a1-check-then-decrement.ts';
import { a2 } from './sql-row/a2-optimistic-version.ts';
import { a3 } from './sql-row/a3-guarded-decrement.ts';
import { a4 } from './sql-row/a4-select-for-update.ts';
import { a5 } from './sql-row/a5-count-then-insert.ts';
import { a6 } from './sql-row/a6-count-in-mutex.ts';

export const SELLING_ROWS: readonly SellingRow[] = [
  ...[a1, a2, a3, a4, a5, a6],
  ...[b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13BeforeCommit, b13AfterCommit],
  ...[c1, c2, c3, c4],
  ...[d1, d2, d3],
];

export const NAMING_ROWS: readonly NamingRow[] = [e1, e2];

export const CATALOGUE: readonly Row[] = [...SELLING_ROWS, ...NAMING_ROWS];
