/**
 * Redis 6.2 wraps an error of a command in a script in the script's name and line: once where the command is called, and once more
 * around the reply of the script.
 */
const WRAPPED =
  /^(?:ERR Error running script \(call to f_[0-9a-f]{40}\): @user_script:\d+: )?@user_script: \d+: -?/;

/** What an error says, with the code that Redis gives it first: the same text from each version of Redis. */
export function replyReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(WRAPPED, '');
}
