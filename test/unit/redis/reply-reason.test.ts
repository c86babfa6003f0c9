import { expect, test } from 'vitest';
import { replyReason } from '../../../src/redis/reply-reason.ts';

const SHA = '131b5f2ed4a6e4f431cc21897ae043d687859f08';
const OOM = "OOM command not allowed when used memory > 'maxmemory'.";

// What Redis 6.2.14 and 7.0.15 answer. A script that looks after several segments hands on what a command has raised.
test.each([
  ['a command', OOM, OOM],
  [
    'a script, Redis 7',
    `${OOM} script: ${SHA}, on @user_script:1.`,
    `${OOM} script: ${SHA}, on @user_script:1.`,
  ],
  [
    'a script, Redis 6.2',
    `ERR Error running script (call to f_${SHA}): @user_script:1: @user_script: 1: -${OOM}`,
    OOM,
  ],
  ['what a command has raised, Redis 6.2', `@user_script: 193: -${OOM}`, OOM],
  [
    'a script without a command',
    `@user_script: 7: attempt to index a nil value`,
    'attempt to index a nil value',
  ],
  ['a text that quotes one', `ERR it was @user_script: 1: -${OOM}`, `ERR it was @user_script: 1: -${OOM}`],
])('the reason in an error of %s', (_, message, reason) => {
  expect(replyReason(new Error(message))).toBe(reason);
  expect(replyReason(message)).toBe(reason);
});
