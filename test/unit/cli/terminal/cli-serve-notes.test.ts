import { expect, test } from 'vitest';
import {
  leavingText,
  startingText,
  stoppedText,
  stoppingText,
} from '../../../../src/cli/terminal/serve-notes.ts';
import { loadConfig } from '../../../../src/config/load-config.ts';

const config = loadConfig({ SHUTDOWN_GRACE_MS: '10000' }, {});

test('a start says where stock and orders are, without passwords', () => {
  expect(startingText(config)).toMatch(/stock in this process; orders in PGlite in \.stockade, which takes/);
  const urls = { REDIS_URL: 'redis://:hunter2@cache', DATABASE_URL: 'postgres://shop:hunter2@db/shop' };
  expect(startingText(loadConfig(urls, {}))).toBe(
    'Starting a node (stock in redis://:***@cache; orders in postgres://shop:***@db/shop) …',
  );
});

test('a stop with a delay says how long it sells on', () => {
  expect(leavingText(loadConfig({ STOP_DELAY_MS: '1500' }, {}))).toMatch(
    /^Stopping in 1\.5 s; until then it sells/,
  );
});

test('a stop prints how many requests are under way, and how long it may take', () => {
  expect(stoppingText(0, config)).toMatch(/^Stopping: no request is under way\. It takes at most 15 s;/);
  expect(stoppingText(1, config)).toMatch(/^Stopping: 1 request under way, answered within 10 s\. .* 15 s;/);
  expect(stoppingText(1_200, config)).toMatch(/^Stopping: 1,200 requests under way, /);
  expect(stoppingText(undefined, config)).toMatch(/^Stopping: requests under way, answered within 10 s\./);
  expect(stoppedText(1_234)).toBe('Stopped after 1.2 s.');
});
