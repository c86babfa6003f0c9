import { expect, it } from 'vitest';
import { EvictionAlarm } from '../../../src/node/stores/eviction-watch.ts';

const a = { server: '10.0.0.1:6379', policy: 'allkeys-lru' };
const b = { server: '10.0.0.2:6379', policy: 'volatile-ttl' };

it('names each server and what to do, in the same order whichever answers first', () => {
  const [one, other] = [new EvictionAlarm(), new EvictionAlarm()];
  one.learn({ evicting: [a, b], silent: [] });
  other.learn({ evicting: [b, a], silent: [] });
  expect(one.text).toBe(other.text);
  expect(one.text).toMatch(
    /10\.0\.0\.1:6379, whose maxmemory-policy is allkeys-lru: set it to noeviction.*10\.0\.0\.2/,
  );
});

it('still names a server that does not answer any more, until its answer shows that it evicts no keys', () => {
  const alarm = new EvictionAlarm();
  alarm.learn({ evicting: [a, b], silent: [] });
  alarm.learn({ evicting: [], silent: [a.server] });
  expect(alarm.servers).toEqual([a]);
  alarm.learn({ evicting: [], silent: [] });
  expect(alarm.text).toBe('');
});
