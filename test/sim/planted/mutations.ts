/**
 * Plausible bugs, each as a replacement in the source. The simulation must find every one of them, under the conditions that it
 * names, within 100 seeds from any seed on. If it does not, it has become weaker.
 */
import type { Conditions } from '../plan/conditions.ts';
import { QUEUE_MUTATIONS } from '../queue/queue-mutations.ts';

export interface Edit {
  readonly file: string;
  /** Must occur once in the file. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** In which about one seed in three finds it, or more (`--frequency` counts them). */
  readonly conditions: Conditions;
}

function mutation(name: string, conditions: Conditions, ...edits: readonly Edit[]): Mutation {
  return { name, conditions, edits };
}

const edit = (file: string, find: string, replace: string): Edit => ({ file: `src/${file}`, find, replace });

const LUA = 'engine/redis/lua';

export const MUTATIONS: readonly Mutation[] = [
  mutation(
    'take: the guard of the stock is left out',
    'mixedWeather',
    edit(`${LUA}/purchase/take.lua`, 'if settled or quantity > left then', 'if settled then'),
  ),
  mutation(
    'take: the limit per buyer is not checked',
    'lostReplies',
    edit(`${LUA}/parts/buyers-record.lua`, 'record.units + quantity > limit', 'false'),
  ),
  mutation(
    'take: a repeated order id is taken again',
    'lostReplies',
    edit(`${LUA}/parts/buyers-record.lua`, 'record.byId[orderId] or record.byKey[key]', 'record.byKey[key]'),
  ),
  mutation(
    'take: a repeated key is taken again',
    'lostReplies',
    edit(
      `${LUA}/parts/buyers-record.lua`,
      'record.byId[orderId] or record.byKey[key]',
      'record.byId[orderId]',
    ),
  ),
  mutation(
    'take: the connection repeats it, and neither tickets nor ids are checked',
    'lostReplies',
    edit(
      'redis/clients.ts',
      'maxRetriesPerRequest: 0, enableOfflineQueue: false,',
      'maxRetriesPerRequest: 3,',
    ),
    edit(`${LUA}/purchase/take.lua`, "if remembered >= tonumber(ticket) then return 'superseded' end", ''),
    edit(`${LUA}/parts/buyers-record.lua`, 'record.byId[orderId] or record.byKey[key]', 'false'),
  ),
  mutation(
    'take: one that comes too late is made',
    'heldUp',
    edit(`${LUA}/purchase/take.lua`, 'if nowMs >= madeBefore then', 'if false then'),
  ),
  mutation(
    'lane: a lost reply counts as a refusal',
    'lostReplies',
    edit(
      'engine/purchase/settle.ts',
      'if (error instanceof OutcomeUnknown && !purchase.isUnsent) purchase.lose(at);',
      '',
    ),
  ),
  mutation(
    'lane: an order that has ended counts as never taken',
    'endsUnheard',
    edit('engine/purchase/purchase.ts', 'one.returned === other.returned &&', ''),
  ),
  mutation(
    'lane: a server that has lost its newest writes counts as the same',
    'setBackUnheard',
    edit('engine/purchase/purchase.ts', 'one.server.isSame(other.server)', 'true'),
  ),
  mutation(
    'lane: an unconfirmed purchase is repeated under a new id',
    'lostReplies',
    edit(
      'engine/purchase/lane.ts',
      "if (purchase.orderId === '') purchase.name(this.#parts.nextOrderId());",
      'purchase.name(this.#parts.nextOrderId());',
    ),
    edit(
      'engine/purchase/purchase.ts',
      "if (this.orderId === '') this.#writable.orderId = orderId;",
      'this.#writable.orderId = orderId;',
    ),
    edit(
      'engine/purchase/lane.ts',
      '      const answer = this.#isShort',
      '      for (const p of asked) if (p.isUnconfirmed) this.#name(p);\n      const answer = this.#isShort',
    ),
  ),
  mutation(
    'board: closed at the newest epoch, not at the one that was observed',
    'lateEmpty',
    edit(
      'engine/purchase/lane.ts',
      'this.#parts.board.close(slot, epoch, began)',
      'this.#parts.board.close(slot, Math.max(epoch, this.#parts.board.epoch(slot)), began)',
    ),
  ),
  mutation(
    'board: an entry is used however old it is',
    'deafBoards',
    edit('engine/board/board.ts', 'return Math.abs(age) <= BOARD_REPAIR_MS;', 'return Math.abs(age) >= 0;'),
  ),
  mutation(
    'take: lost writes are not noticed',
    'unreadLost',
    edit(
      `${LUA}/purchase/take.lua`,
      'if remembered < answered or last < knownSeq or (last == knownSeq and tail ~= knownTail) then',
      'if false then',
    ),
  ),
  mutation(
    'watermark: settles orders by the entry number alone',
    'lateReturns',
    edit(
      'engine/purchase/commit-waiters.ts',
      'const certain = !this.#named || this.#entries.get(seq) === entry || rejected !== undefined;',
      "const certain = seq > 0 || entry === '';",
    ),
  ),
  mutation(
    'top-up: credited again at each repetition',
    'cutReturns',
    edit(
      `${LUA}/change/credit.lua`,
      'if tonumber(now[3] or 0) >= tonumber(movement) then return 0 end\n',
      '',
    ),
  ),
  mutation(
    'parking: parked purchases are never released',
    'rebuiltAgain',
    edit(
      'engine/purchase/parking.ts',
      'setTimeout(this.#timeUp, PARKED_MAX_MS)',
      'setTimeout(() => {}, PARKED_MAX_MS)',
    ),
    edit('engine/purchase/live-sale.ts', '    }\n    this.#endParking();', '    }'),
  ),
  mutation(
    'returns: the epoch is not raised',
    'lateRefusals',
    edit('engine/redis/redis-log.ts', 'if (c.units > 0) await this.#reopen(c.saleId);', ''),
  ),
  mutation(
    'returns: applied again at each repetition',
    'cutReturns',
    edit(`${LUA}/change/compensate.lua`, 'if found == 1 then\n', 'do\n'),
  ),
  mutation(
    'returns: marked before they are applied',
    'cutReturns',
    edit(
      'orders/returns.ts',
      '  const ends = await Promise.allSettled(',
      '  await markApplied(db, pending);\n  const ends = await Promise.allSettled(',
    ),
  ),
  mutation(
    'sync: the watermark is published before the commit',
    'mixedWeather',
    edit(
      'sync/applier.ts',
      '    let rejected: Map<string, Rejection>;\n',
      '    let rejected: Map<string, Rejection>;\n    void this.#teller.tell(watermarksOf(batch, new Map()));\n',
    ),
  ),
  mutation(
    'sync: a log that was trimmed too far is not noticed',
    'mixedWeather',
    edit(
      'sync/apply/watermark-teller.ts',
      'await this.#log.advance(untold);',
      'await this.#log.advance(untold.map((w) => ({ ...w, seq: w.seq + 1, tails: [] })));',
    ),
  ),
  mutation(
    'rebuild: buyers are not loaded',
    'rebuiltAgain',
    edit(`${LUA}/build/load-holdings.lua`, 'if writes[1] then', 'if false then'),
  ),
  mutation(
    'rebuild: published without looking whether the records are there',
    'recordsLost',
    edit(`${LUA}/change/set-state.lua`, 'if publish and now[3] ~= afterAllIds then', 'if false then'),
    edit(
      'engine/cluster/cluster-sales.ts',
      "stateNow === 'loaded' && upTo === AFTER_ALL_IDS",
      "stateNow === 'loaded'",
    ),
  ),
  mutation(
    'rebuild: surplus segments are removed without a look',
    'sellsAgain',
    edit(
      'rebuild/rebuild.ts',
      '  const surplus = await backend.sales.olderSegments({ saleId: sale.id, generation }, sale.segments);\n  if (surplus.length > 0) throw new StaleGeneration(sale.id, generation);\n',
      '  await backend.sales.removeSegments({ saleId: sale.id, generation }, sale.segments);\n',
    ),
  ),
  mutation(
    'archive: the segments stay',
    'rebuiltAgain',
    edit('engine/redis/redis-sales.ts', '    await this.removeSegments(sale, 0, which);\n', ''),
  ),
  mutation(
    'archive: the record stays',
    'rebuiltAgain',
    edit(
      'engine/redis/redis-sales.ts',
      '    await this.#scripts.archiveSale(this.#keys.sale(sale.saleId), sale.generation);\n',
      '',
    ),
  ),
  mutation(
    'transfer: credit before debit',
    'diesTransferring',
    edit(`${LUA}/change/transfer-debit.lua`, 'supply(donor, -moved)\n', ''),
    edit(
      `${LUA}/change/transfer-settle.lua`,
      "return redis.call('HDEL', donor, 'out')",
      "local n = tonumber(string.match(now[2], '%d+$'))\nredis.call('HINCRBY', donor, 'left', -n)\nredis.call('HINCRBY', donor, 'supplied', -n)\nreturn redis.call('HDEL', donor, 'out')",
    ),
  ),
  mutation(
    'transfer: credited again at each repetition',
    'diesTransferring',
    edit(
      `${LUA}/change/transfer-credit.lua`,
      'if tonumber(now[4] or 0) >= tonumber(seq) then return 0 end\n',
      '',
    ),
  ),
  mutation(
    'transfer: an open one is never completed',
    'leftTransferring',
    edit(
      'engine/cluster/refill.ts',
      'if (await this.#finishOthers(sale, sights))',
      'if (sights.length === 0 && (await this.#finishOthers(sale, sights)))',
    ),
    edit(
      'engine/cluster/cluster-transfers.ts',
      'if (!sight?.out || isStuck(sight, sights)) continue;',
      'if (!sight?.out || sights.length > 0) continue;',
    ),
  ),
  mutation(
    'withdrawal: taken from Postgres before it is out of the segments',
    'crossingHands',
    edit(`${LUA}/change/withdraw.lua`, '  supply(segment, -more)\n', ''),
  ),
  mutation(
    'deadlines: purchases are not answered at their deadline',
    'setBack',
    edit('engine/purchase/under-way.ts', 'first.expire(this.#durable);', 'this.#purchases.remove(first);'),
  ),
  mutation(
    'sync: the cursor is not checked',
    'lostLocks',
    edit('postgres/migrations/025-many-sales.sql', ' AND c.position = n.since;', ';'),
  ),
  mutation(
    'rebuild: without freeze',
    'rebuiltAgain',
    edit(
      'rebuild/rebuild.ts',
      '    await backend.sales.freeze(saleId, logs.segments, logs.generation);\n',
      '',
    ),
  ),
  mutation(
    'rebuild: without salvage',
    'rebuiltAgain',
    edit(
      'rebuild/salvage.ts',
      'const applied = await applyUnknown(db, row, read, saved.orders);',
      'const applied: Applied = { orders: 0, rejected: [] };',
    ),
  ),
  // A bug that the simulation has found in the program itself.
  mutation(
    'cluster: a wait for the first connection ignores the second',
    'startsAlone',
    edit(
      'redis/clients.ts',
      '(client instanceof Cluster ? connectCluster(client) : client.connect())',
      'client.connect()',
    ),
  ),
  mutation(
    'expiry: paid orders expire',
    'paidTooLate',
    edit(
      'postgres/migrations/031-expiry-beside-locks.sql',
      "WHERE o.status = 'unpaid' AND",
      "WHERE o.status IN ('unpaid', 'paid') AND",
    ),
  ),
  mutation(
    'payment: an expired order is marked as paid',
    'paidTooLate',
    edit(
      'postgres/migrations/027-second-late-payment.sql',
      "stands.expires_at <= now()) THEN 'late'",
      "stands.expires_at <= now()) THEN 'possible'",
    ),
  ),
  mutation(
    'late payment: accepted although the units are gone',
    'paidTooLate',
    edit(
      'postgres/migrations/027-second-late-payment.sql',
      'UPDATE orders SET refund_due_at = now(), pay_type = payment WHERE order_id = late;',
      "UPDATE orders SET status = 'paid', paid_at = now(), pay_type = payment WHERE order_id = late;",
    ),
  ),
  mutation(
    'refund: a late payment returns the units a second time',
    'paidTooLate',
    edit(
      'postgres/migrations/027-second-late-payment.sql',
      "ELSIF stands.status = 'paid' THEN",
      "ELSIF change = 'refund' THEN",
    ),
  ),
  mutation(
    'changes: decided on a state read before another change',
    'crossingHands',
    edit(
      'sales/sale-changes.ts',
      '  await despiteDeadlocks(() =>\n    transactionInTime(db, latestMs, async (trx) => {\n      const row = await lockSale(trx, saleId);\n',
      '  const row = await readPresentSale(db, saleId);\n  await despiteDeadlocks(() =>\n    transactionInTime(db, latestMs, async (trx) => {\n',
    ),
  ),
  mutation(
    'changes: a pause leaves no row in the ledger',
    'crossingHands',
    edit(
      'sales/sale-changes.ts',
      'return { action, detail: { from: row.state } };',
      "return action === 'pause' ? undefined : { action, detail: { from: row.state } };",
    ),
  ),
  mutation(
    'sweep: a closed sale is released although its log holds orders',
    'diesClosing',
    edit(
      'sync/reconciler/reconciler.ts',
      "state === 'closed' && log.backlog === 0 &&",
      "state === 'closed' &&",
    ),
  ),
  mutation(
    'withdrawal: ends although it is being undone',
    'undoneHands',
    edit('sales/withdrawal.ts', " AND detail->'undoing' IS NULL RETURNING id", ' RETURNING id'),
  ),
  mutation(
    'draft: its beginning is noted after its pages',
    'busyDrafts',
    edit('rebuild/draft.ts', '  await noteBeginning(db, { saleId: sale.id, generation, id });\n', ''),
    edit(
      'rebuild/draft.ts',
      '  return draft;',
      '  await noteBeginning(db, { saleId: sale.id, generation, id });\n  return draft;',
    ),
  ),
  mutation(
    'draft: what has changed is found by the clock at its beginning',
    'draftsOverSetClocks',
    edit('rebuild/draft.ts', "draft_since = 'infinity'", 'draft_since = now()'),
    edit(
      'postgres/migrations/025-many-sales.sql',
      'live_orders = live_orders + sale_orders[i],\n          draft_since = least(draft_since, now())',
      'live_orders = live_orders + sale_orders[i]',
    ),
  ),
  mutation(
    'erase: before the salvage',
    'erasedInTheRush',
    edit(
      'rebuild/rebuild.ts',
      '  let salvagedOrders = 0;\n',
      '  const early = { saleId, generation: before.generation };\n  await db.transaction(async (trx) => applyErasures(trx, early, await lockDueErasures(trx, saleId)));\n  let salvagedOrders = 0;\n',
    ),
  ),
  mutation(
    'erase: the backend is not rebuilt',
    'leavers',
    edit('sync/reconciler/erasures.ts', 'due.filter(({ isArchived }) => !isArchived)', '[]'),
    edit('sync/reconciler/erasures.ts', 'due.filter(({ isArchived }) => isArchived)', 'due'),
    edit('rebuild/erasures.ts', 'AND archived_at IS NOT NULL AND deleting_since IS NULL FOR', 'FOR'),
  ),
  mutation(
    'delete: a new sale begins in the first generation',
    'leavers',
    edit('rebuild/rebuild.ts', 'generation === 0 ? await readDeletedGeneration(trx, sale.id) : 0', '0'),
    edit('rebuild/rebuild.ts', 'isOfDeleted: of <= deleted', 'isOfDeleted: false'),
  ),
  mutation(
    'delete: is not continued if its node dies',
    'leavers',
    edit(
      'deletion/deletion-finisher.ts',
      'of await readOpenDeletions(db)',
      'of (await readOpenDeletions(db)).slice(1)',
    ),
  ),
  mutation(
    'reconciler: lost units are not noticed',
    'lostUnits',
    edit('sync/reconciler/supply-check.ts', 'if (!backend.durable ||', 'if (backend.durable ||'),
  ),
  mutation(
    'take: a closed segment does not look for losses',
    'lostAndClosed',
    edit(
      `${LUA}/purchase/take.lua`,
      "and now[2] ~= 'paused' and now[2] ~= 'closed' then",
      "and now[2] ~= 'paused' then",
    ),
  ),
  mutation(
    'reconciler: of closed sales only the record is compared',
    'emptiedAndClosed',
    edit(
      'sync/reconciler/log-scanner.ts',
      'if (!this.#isDone(seen)) unfinished.push(seen);\n        else if (!isArchived) drained.push(seen);',
      'if (!this.#isDone(seen)) unfinished.push(seen);',
    ),
  ),
  mutation(
    'delete: sync does not work on a sale that is made again',
    'madeAgainLater',
    edit(
      'sync/reconciler/reconciler.ts',
      "      if (sale.state !== 'closed') this.#sales.unfinish(sale.id);\n",
      '',
    ),
  ),
  mutation(
    'sync: what it saw in a log counts for the next generation',
    'rebuiltAgain',
    edit('sync/apply/sale-log.ts', 'before?.generation === this.generation ?', 'before ?'),
  ),
  mutation(
    'sync: a cursor is found by its segment, whatever its sale',
    'madeAgainLater',
    edit(
      'postgres/migrations/025-many-sales.sql',
      'WHERE c.sale_id = n.sale_id AND c.segment',
      'WHERE c.segment',
    ),
  ),
  mutation(
    'hand-over: the lock is not released',
    'handOvers',
    edit(
      'sync/held/held-sales.ts',
      '    await this.#unlock(saleIds);\n    return saleIds;',
      '    return saleIds;',
    ),
  ),
  ...QUEUE_MUTATIONS,
];
