/** What Postgres' client calls the errors that it got from the server. */
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** The client's own errors while a statement is under way. */
const OF_CLIENT = / - (?:Query read timeout|Connection terminated[^-]*|Client has encountered [^-]*)$/;

/** The message of an error without the statement that knex puts before it: it helps no operator. */
export function plainMessage(error: Error): string {
  const { code = '' } = error as { code?: unknown };
  return SQLSTATE.test(String(code)) || OF_CLIENT.test(error.message)
    ? error.message.replace(/^.* - /s, '')
    : error.message;
}
