/** Reads a node's `/metrics` (Prometheus' text format), as far as benches need it. */

export interface NodeFigures {
  /** Purchases answered, by outcome, since the node started. */
  readonly answers: ReadonlyMap<string, number>;
  /** Orders that sync has committed since the node started. */
  readonly syncedOrders: number;
  /** Order events that are in the stream, since the node started. */
  readonly streamedEvents: number;
  /** Orders in the logs at sync's last sweep, up to a second ago. */
  readonly lagOrders: number;
  /** Purchases under way: in a lane, or waiting for their commit. */
  readonly underWay: number;
  /** Script calls that took orders, and the orders in them, since the node started. */
  readonly takes: Batches;
  /** Transactions of sync, and the orders in them, since the node started. */
  readonly transactions: Batches;
}

export interface Batches {
  readonly count: number;
  readonly orders: number;
}

export function readFigures(text: string): NodeFigures {
  const answers = new Map<string, number>();
  const [takes, transactions] = [
    { count: 0, orders: 0 },
    { count: 0, orders: 0 },
  ];
  let [syncedOrders, streamedEvents, lagOrders, underWay] = [0, 0, 0, 0];
  for (const line of text.split('\n')) {
    const sample = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!sample) continue;
    const [, name, labels = '', value] = sample;
    switch (name) {
      case 'stockade_request_duration_seconds_count':
        answers.set(/outcome="([^"]*)"/.exec(labels)?.[1] ?? '', Number(value));
        break;
      case 'stockade_sync_orders_total':
        syncedOrders = Number(value);
        break;
      case 'stockade_events_streamed_total':
        streamedEvents = Number(value);
        break;
      case 'stockade_sync_lag_orders':
        lagOrders = Number(value);
        break;
      case 'stockade_lane_depth':
      case 'stockade_commit_waiters':
        underWay += Number(value);
        break;
      case 'stockade_batch_orders_count':
        takes.count = Number(value);
        break;
      case 'stockade_batch_orders_sum':
        takes.orders = Number(value);
        break;
      case 'stockade_sync_batch_orders_count':
        transactions.count = Number(value);
        break;
      case 'stockade_sync_batch_orders_sum':
        transactions.orders = Number(value);
    }
  }
  return { answers, syncedOrders, streamedEvents, lagOrders, underWay, takes, transactions };
}

/** Spans of traces by what became of them, since the node started. */
export function readSpans(text: string): Record<string, number> {
  const lines = text.matchAll(/^stockade_trace_spans_total\{outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, outcome, spans]) => [outcome, Number(spans)]));
}

/** The figures of several nodes of one shop together. */
export function together(nodes: readonly NodeFigures[]): NodeFigures {
  const sum = (figure: (node: NodeFigures) => number) =>
    nodes.reduce((total, node) => total + figure(node), 0);
  const batches = (figure: (node: NodeFigures) => Batches) => ({
    count: sum((node) => figure(node).count),
    orders: sum((node) => figure(node).orders),
  });
  const outcomes = new Set(nodes.flatMap((node) => [...node.answers.keys()]));
  return {
    answers: new Map([...outcomes].map((name) => [name, sum((node) => node.answers.get(name) ?? 0)])),
    syncedOrders: sum((node) => node.syncedOrders),
    streamedEvents: sum((node) => node.streamedEvents),
    lagOrders: sum((node) => node.lagOrders),
    underWay: sum((node) => node.underWay),
    takes: batches((node) => node.takes),
    transactions: batches((node) => node.transactions),
  };
}

/** Orders named in answers to buyers that sync has not committed yet. */
export function backlog({ answers, syncedOrders }: NodeFigures): number {
  const told = (answers.get('accepted') ?? 0) + (answers.get('committed') ?? 0);
  return Math.max(0, told - syncedOrders);
}

export function answered({ answers }: NodeFigures): number {
  let total = 0;
  for (const n of answers.values()) total += n;
  return total;
}

/** Answers between two readings, by outcome, without those that did not occur. */
export function answersBetween(before: NodeFigures, after: NodeFigures): Map<string, number> {
  const between = new Map<string, number>();
  for (const [outcome, total] of after.answers) {
    const added = total - (before.answers.get(outcome) ?? 0);
    if (added > 0) between.set(outcome, added);
  }
  return between;
}

/** Orders in each batch between two readings; `undefined`: there was none. */
export function meanBatch(before: Batches, after: Batches): number | undefined {
  const count = after.count - before.count;
  return count > 0 ? (after.orders - before.orders) / count : undefined;
}
