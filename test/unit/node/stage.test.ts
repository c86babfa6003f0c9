import { expect, test } from 'vitest';
import { Stage } from '../../../src/node/process/stage.ts';

test('a process is ready from its start to its stop, unless it says why it is not', async () => {
  const stage = new Stage();
  let reason: string | undefined;
  expect(await stage.notReady()).toBe('starting');
  stage.run(async () => reason);
  expect(await stage.notReady()).toBeUndefined();
  reason = 'redis does not answer';
  expect(await stage.notReady()).toBe(reason);
  expect(stage.isStopping).toBe(false);
  stage.stop();
  expect(stage.isStopping).toBe(true);
  expect(await stage.notReady()).toBe('stopping');
});
