/**
 * Bugs that somebody might make, each as words of the source that are replaced by others. The simulation has to find every
 * one of them within 1,000 seeds; if it does not, it has lost a tooth.
 */
export interface Edit {
  readonly file: string;
  /** Must be there once. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutation {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Seeds that have found it: tried first. After a change of the simulation they may be wrong, which only costs time. */
  readonly seenIn: readonly number[];
}

function mutation(name: string, seenIn: readonly number[], ...edits: readonly Edit[]): Mutation {
  return { name, seenIn, edits };
}

const edit = (file: string, find: string, replace: string): Edit => ({ file: `src/${file}`, find, replace });

const LUA = 'engine/redis/lua';

export const MUTATIONS: readonly Mutation[] = [
  mutation(
    'take: the guard of the stock is left out',
    [1],
    edit(`${LUA}/take.lua`, 'if settled or quantity > left then', 'if settled then'),
  ),
  mutation(
    'take: the limit per buyer is not checked',
    [1],
    edit(`${LUA}/buyers-record.lua`, 'record.units + quantity > limit', 'false'),
  ),
  mutation(
    'take: a repeated order id is taken again',
    [9, 40],
    edit(`${LUA}/buyers-record.lua`, 'record.byId[orderId] or record.byKey[key]', 'record.byKey[key]'),
  ),
  mutation(
    'take: a repeated key is taken again',
    [5, 11],
    edit(`${LUA}/buyers-record.lua`, 'record.byId[orderId] or record.byKey[key]', 'record.byId[orderId]'),
  ),
  mutation(
    'take: lost writes are not noticed',
    [79],
    edit(`${LUA}/take.lua`, 'if remembered < answered or last < knownSeq', 'if false and last < knownSeq'),
  ),
  mutation(
    'take: sent again by the connection, whose tickets and ids nobody checks',
    [3],
    edit(
      'engine/redis/clients.ts',
      'maxRetriesPerRequest: 0,\n    enableOfflineQueue: false,',
      'maxRetriesPerRequest: 3,',
    ),
    edit(`${LUA}/take.lua`, "if remembered >= tonumber(ticket) then return 'superseded' end", ''),
    edit(`${LUA}/buyers-record.lua`, 'record.byId[orderId] or record.byKey[key]', 'false'),
  ),
  mutation(
    'lane: a reply that was lost counts as a refusal',
    [9],
    edit('engine/lane.ts', 'if (error instanceof OutcomeUnknown) pending.inDoubt = true;', ''),
  ),
  mutation(
    'lane: a purchase in doubt is asked again under a new id',
    [9, 40],
    edit(
      'engine/lane.ts',
      'pending.orderId ||= this.#host.nextOrderId();',
      'pending.orderId = this.#host.nextOrderId();',
    ),
    edit(
      'engine/lane.ts',
      '      try {\n        const answer = refill',
      '      try {\n        for (const p of asked) if (p.inDoubt) this.#name(p);\n        const answer = refill',
    ),
  ),
  mutation(
    'waiters: a watermark settles by number alone',
    [35],
    edit('engine/commit-waiters.ts', 'const certain = !this.#named ||', 'const certain = true ||'),
  ),
  mutation(
    'board: closed at the newest epoch, not the observed one',
    [],
    edit(
      'engine/board.ts',
      'this.#raise(slot, SOLD_OUT_EPOCH, epoch);',
      'this.#raise(slot, SOLD_OUT_EPOCH, this.epoch(slot));',
    ),
  ),
  mutation(
    'board: believed however old it is',
    [],
    edit('engine/board.ts', 'return Math.abs(age) <= BOARD_REPAIR_MS;', 'return age === age;'),
  ),
  mutation(
    'returns: the epoch is not raised',
    [6],
    edit('engine/redis/redis-log.ts', 'if (c.units > 0) await this.#reopen(c.saleId);', ''),
  ),
  mutation(
    'returns: given back as often as asked',
    [12],
    edit(`${LUA}/compensate.lua`, 'if found == 1 then\n', 'do\n'),
  ),
  mutation(
    'returns: marked before they are applied',
    [8],
    edit(
      'sync/orders/returns.ts',
      '  const ends = await Promise.allSettled(',
      '  await markApplied(db, pending);\n  const ends = await Promise.allSettled(',
    ),
  ),
  mutation(
    'sync: the watermark is told before the commit',
    [1],
    edit(
      'sync/apply/applier.ts',
      '    let rejected: Map<string, Rejection>;\n',
      '    let rejected: Map<string, Rejection>;\n    void this.#teller.tell(watermarksOf(batch, new Map()));\n',
    ),
  ),
  mutation(
    'sync: the cursor is not checked',
    [1],
    edit(
      'sync/migrations/004-order-life.sql',
      'AND c.generation = n.generation AND c.position = n.since;',
      ';',
    ),
    edit(
      'sync/migrations/004-order-life.sql',
      'FROM unnest(order_ids, order_sales, order_buyers, order_quantities, order_keys)\n        AS o (id, sale, buyer, quantity, key);',
      'FROM unnest(order_ids, order_sales, order_buyers, order_quantities, order_keys)\n        AS o (id, sale, buyer, quantity, key) ON CONFLICT DO NOTHING;',
    ),
  ),
  mutation(
    'sync: a log that was trimmed too far is not noticed',
    [1],
    edit(
      'sync/apply/watermark-teller.ts',
      'await this.#log.advance(untold);',
      'await this.#log.advance(untold.map((w) => ({ ...w, seq: w.seq + 1, tails: [] })));',
    ),
  ),
  mutation(
    'rebuild: the segments are not frozen',
    [3],
    edit(
      'sync/rebuild/rebuild.ts',
      'await backend.sales.freeze(saleId, logs.segments, logs.generation);',
      '',
    ),
  ),
  mutation(
    'rebuild: what the logs hold is not salvaged',
    [3],
    edit(
      'sync/rebuild/rebuild.ts',
      'for (const logs of await logsOf(backend, before)) {',
      'for (const logs of (await logsOf(backend, before)).slice(0, 0)) {',
    ),
  ),
  mutation(
    'rebuild: a load replaces a segment of its own generation',
    [],
    edit(
      `${LUA}/load-segment.lua`,
      'tonumber(current) >= tonumber(generation)',
      'tonumber(current) > tonumber(generation)',
    ),
    edit(`${LUA}/set-state.lua`, "(now[2] == 'loaded') ~= publish", 'false'),
  ),
  mutation(
    'rebuild: buyers are not loaded',
    [],
    edit(`${LUA}/load-holdings.lua`, 'if #writes > 0 then', 'if false then'),
  ),
  mutation(
    'transfer: credit before debit',
    [1],
    edit(`${LUA}/transfer-debit.lua`, 'supply(donor, -moved)\n', ''),
    edit(
      `${LUA}/transfer-settle.lua`,
      "return redis.call('HDEL', donor, 'out')",
      "local n = tonumber(string.match(now[2], '%d+$'))\nredis.call('HINCRBY', donor, 'left', -n)\nredis.call('HINCRBY', donor, 'supplied', -n)\nreturn redis.call('HDEL', donor, 'out')",
    ),
  ),
  mutation(
    'transfer: credited as often as asked',
    [23],
    edit(`${LUA}/transfer-credit.lua`, 'if tonumber(now[4] or 0) >= tonumber(seq) then return 0 end\n', ''),
  ),
  mutation(
    'transfer: what others have begun is not finished',
    [],
    edit(
      'engine/cluster/refill.ts',
      'if (await this.#finishOthers(sale, sights))',
      'if (sights.length === 0 && (await this.#finishOthers(sale, sights)))',
    ),
    edit(
      'engine/cluster/cluster-transfers.ts',
      'if (!sight?.out) continue;',
      'if (sight !== null) continue;',
    ),
  ),
  mutation(
    'movements: a top-up is credited as often as asked',
    [],
    edit(`${LUA}/credit.lua`, 'if tonumber(now[3] or 0) >= tonumber(movement) then return 0 end\n', ''),
  ),
  mutation(
    'withdrawal: taken from Postgres before it is out of the segments',
    [],
    edit(`${LUA}/withdraw.lua`, '  supply(segment, -more)\n', ''),
  ),
  mutation(
    'deadlines: nobody is told when his time is over',
    [],
    edit('engine/deadlines.ts', 'pending.settle(this.#expired(pending));', 'this.#expired(pending);'),
  ),
  mutation(
    'parking: nobody leaves when the next generation is there',
    [],
    edit('engine/parking.ts', 'this.#leave(this.#waiting.drain());', 'this.#waiting.drain();'),
  ),
  // Two that the simulation has found in the program itself.
  mutation(
    'sync: a rebuild under way is taken for a loss',
    [],
    edit(
      'sync/held-sales.ts',
      'return pulse !== undefined && pulse.generation < generation;',
      'return pulse === null;',
    ),
  ),
  mutation(
    'cluster: who waited for the first connection is not told of the second',
    [],
    edit(
      'engine/redis/clients.ts',
      '(client instanceof Redis ? client.connect() : connectCluster(client))',
      'client.connect()',
    ),
  ),
];
