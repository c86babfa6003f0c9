import { Counter, Gauge, type Registry } from 'prom-client';
import type { RelayEvents } from '../../events/relay-events.ts';
import { seldom } from '../../lib/seldom.ts';
import type { Log } from '../process/log.ts';

const NAMED_GROUPS = 10;
const MISSED =
  'order events were trimmed from the stream before these consumer groups read them; raise EVENTS_STREAM_MAX';
const UNSEEN =
  'the relay can’t see whether readers of the event stream miss events: give the user in Redis the rights of deploy/redis-users.acl';

function metricsOf(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  return {
    streamed: counter('stockade_events_streamed_total', 'Order events appended to the stream'),
    missed: counter(
      'stockade_events_missed_total',
      'Order events trimmed from the stream before a consumer group read them',
    ),
    reach: gauge(
      'stockade_events_stream_reach_seconds',
      'Age of the oldest order event in the stream when it was last trimmed',
    ),
    outboxRows: gauge('stockade_outbox_rows', 'Rows of the outbox that wait for the relay'),
    outboxAge: gauge('stockade_outbox_age_seconds', 'Age of the oldest row of the outbox'),
    posted: counter('stockade_webhook_events_total', 'Order events that the webhook has accepted'),
    failures: counter('stockade_webhook_failures_total', 'Requests that the webhook did not accept'),
    pages: gauge('stockade_webhook_pages', 'Pages of events that wait for the webhook'),
    pageAge: gauge('stockade_webhook_age_seconds', 'Age of the oldest event that waits for the webhook'),
    dead: gauge(
      'stockade_webhook_dead_letters',
      'Pages of events that are sent again only when an operator asks for it',
    ),
    crashes: counter('stockade_relay_crashes_total', 'Failures of the relay of order events'),
  };
}

/**
 * Writes what the relay of order events reports to the log and the metrics.
 * @param handlesEvents a function of the program gets them instead of the webhook
 */
export function watchEvents(log: Log, registry: Registry, handlesEvents = false): RelayEvents {
  const metrics = metricsOf(registry);
  const [receiver, howToList] = handlesEvents
    ? ['onOrderEvents', 'events.deadLetters()']
    : ['the webhook', 'stockade events dead'];
  const lost = new Map<string, number>();
  const mayReport = seldom();
  const reportLost = () => {
    if (lost.size === 0 || !mayReport()) return;
    log.warn({ missed: Object.fromEntries([...lost].slice(0, NAMED_GROUPS)) }, MISSED);
    lost.clear();
  };
  return {
    streamed({ events }) {
      metrics.streamed.inc(events);
    },
    displaced({ events, reachMs, missed, unseen }) {
      if (events > 0 && unseen === undefined) metrics.reach.set(reachMs / 1_000);
      for (const { group, events } of missed) {
        metrics.missed.inc(events);
        lost.set(group, (lost.get(group) ?? 0) + events);
      }
      if (unseen === undefined) reportLost();
      else if (mayReport()) log.warn({ reason: unseen }, UNSEEN);
    },
    posted({ events }) {
      metrics.posted.inc(events);
    },
    postFailed({ error, ...info }) {
      metrics.failures.inc();
      if (info.retryMs === undefined) return;
      log.warn({ err: error, ...info }, `${receiver} did not accept order events; the relay will try again`);
    },
    gaveUp({ error, ...info }) {
      log.error(
        { err: error, ...info },
        `order events became dead letters after the last attempt: list them with ${howToList}`,
      );
    },
    waiting({ rows, oldestMs, pages, oldestPageMs, deadPages }) {
      // It comes each second. After a crowd, the stream may take no event for long that would bring the report.
      reportLost();
      metrics.outboxRows.set(rows);
      metrics.outboxAge.set(oldestMs / 1_000);
      metrics.pages.set(pages);
      metrics.pageAge.set(oldestPageMs / 1_000);
      metrics.dead.set(deadPages);
    },
    crashed({ error, ...info }) {
      metrics.crashes.inc();
      log.error({ err: error, ...info }, 'the relay of order events failed and will start again');
    },
  };
}
