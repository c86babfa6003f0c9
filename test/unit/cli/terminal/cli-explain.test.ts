import { CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import { explain, Interrupted, UsageError } from '../../../../src/cli/terminal/explain.ts';
import { invokedAs } from '../../../../src/cli/terminal/invoked-as.ts';
import { ConfigError } from '../../../../src/config/load-config.ts';
import { InvalidInput, NotExecuted, StockadeError } from '../../../../src/engine/errors.ts';
import { OrdersDiffer } from '../../../../src/operations/delete-operations.ts';
import { ChangeFailed } from '../../../../src/operations/operation-faults.ts';
import { UnknownSale } from '../../../../src/operations/sale-operations.ts';

describe('errors in words', () => {
  test('faults get a line each, and exit code 2', () => {
    const faults = ['PORT', 'HOST'].map((field) => ({ field, problem: 'is wrong' }));
    for (const error of [new ConfigError(faults), new InvalidInput('it is not valid', faults)]) {
      expect(explain(error)).toMatchObject({
        exitCode: 2,
        lines: ['error: PORT is wrong', 'error: HOST is wrong'],
        json: { error: { code: error.code, faults } },
      });
    }
  });

  test('a typed error prints its message, without a stack', () => {
    expect(explain(new StockadeError('wrong_status', 'order 7 is paid'))).toEqual({
      exitCode: 1,
      lines: ['error: order 7 is paid'],
      json: { error: { code: 'wrong_status', message: 'order 7 is paid' } },
    });
  });

  test('a sale whose orders keep it from being deleted: which command deletes both', () => {
    const [error, advice] = explain(new OrdersDiffer('jazz', 2, 0)).lines;
    expect(error).toBe('error: sale jazz has 2 orders: export them, and then delete the sale with them');
    expect(explain(new OrdersDiffer('jazz', 1, 0)).lines[0]).toMatch(/1 order: export it, .* with it$/);
    expect(advice).toMatch(/ sale delete <sale> --with-orders --export <new file>` /);
  });

  test('an unknown sale: where to look', () => {
    const { exitCode, lines, json } = explain(new UnknownSale('x'));
    expect({ exitCode, first: lines[0] }).toEqual({ exitCode: 1, first: 'error: there is no sale x' });
    expect(lines[1]).toMatch(/ sale list --all --archived include` lists all sales\..*DATABASE_URL.*OPS_URL/);
    expect(json).toMatchObject({ error: { code: 'unknown_sale', message: 'there is no sale x' } });
  });

  test('a fault of configuration that a part of the node has found is one of configuration', () => {
    expect(explain(new StockadeError('invalid_config', 'CHALLENGE names x')).exitCode).toBe(2);
  });

  test('errors are explained by their cause and by what to do', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:6379'), { code: 'ECONNREFUSED' });
    const { lines } = explain(new StockadeError('store', 'Redis can not be reached', { cause }));
    expect(lines[0]).toBe('error: Redis can not be reached: connect ECONNREFUSED 127.0.0.1:6379');
    expect(lines[1]).toMatch(/correct REDIS_URL or DATABASE_URL; `.+ doctor` checks/);
  });

  test('an error of Postgres is printed without the statement', () => {
    const error = new Error('SELECT a - b FROM sales - permission denied for table sales');
    const { lines } = explain(Object.assign(error, { code: '42501' }));
    expect(lines).toEqual([
      'error: permission denied for table sales',
      expect.stringMatching(
        /^ {2}The user of DATABASE_URL lacks a right: run `.+ migrate --grant-to <that user>`/,
      ),
    ]);
  });

  test('nor is it if Postgres has not answered, or may have made the change', () => {
    // As knex does.
    const unanswered = new Error('Query read timeout');
    unanswered.message = `SELECT a - b FROM sales - ${unanswered.message}`;
    expect(explain(unanswered).lines).toEqual(['error: Query read timeout']);
    expect(explain(new ChangeFailed(unanswered)).lines).toEqual([
      'error: Query read timeout; the change may have been made: check that before you repeat it',
    ]);
  });

  test.each([
    ['25006', /primary.*default_transaction_read_only/],
    ['53100', /disk of Postgres is full/],
  ])('Postgres can’t write, %s: what to do', (code, advice) => {
    const { lines } = explain(Object.assign(new Error('INSERT - it is refused'), { code }));
    expect(lines).toEqual(['error: it is refused', expect.stringMatching(advice)]);
  });

  test.each([
    ['MISCONF Errors writing to the AOF file: No space left on device', /make room on the disk of Redis/],
    ["OOM command not allowed when used memory > 'maxmemory'.", /memory of Redis is full/],
  ])('Redis can’t write, %s: what to do', (message, advice) => {
    const { lines } = explain(new Error(message));
    expect(lines).toEqual([`error: ${message}`, expect.stringMatching(advice)]);
  });

  test('a database that was never migrated: a sentence, and what to do', () => {
    const error = new Error('SELECT a - b FROM sales - relation "sales" does not exist');
    const { lines } = explain(Object.assign(error, { code: '42P01' }));
    expect(lines).toEqual([
      "error: this database does not have Stockade's tables, or not all of them",
      expect.stringMatching(/^ {2}Run `.* migrate` with this DATABASE_URL/),
    ]);
  });

  test('a connection tried at several addresses', () => {
    const tries = ['::1', '127.0.0.1'].map((host) => new Error(`connect ECONNREFUSED ${host}:5432`));
    const error = Object.assign(new AggregateError(tries), { code: 'ECONNREFUSED' });
    expect(explain(error).lines[0]).toBe(
      'error: connect ECONNREFUSED ::1:5432, connect ECONNREFUSED 127.0.0.1:5432',
    );
  });

  test('a command that a message advises is called as this program was', () => {
    const { lines, json } = explain(new StockadeError('foreign_stores', 'run `stockade recover --adopt`'));
    expect(lines).toEqual([`error: run \`${invokedAs()} recover --adopt\``]);
    expect(json).toMatchObject({ error: { message: `run \`${invokedAs()} recover --adopt\`` } });
  });

  test.each([
    ['42704', 'GRANT a - role "nope" does not exist', /Create that role first.*deploy\/postgres-roles\.sql/],
    ['ENOENT', "ENOENT: no such file or directory, open '/nope'", /correct the path/],
    [undefined, "Socket timeout. Expecting data, but didn't receive any in 5000ms.", /Redis does not answer/],
    [undefined, 'Command timed out', /Redis does not answer/],
  ])('what to do about %s: %s', (code, message, advice) => {
    const cause = Object.assign(new Error(message), code && { code });
    expect(explain(cause).lines[1]).toMatch(advice);
  });

  test.each([
    ['listen EACCES: permission denied 0.0.0.0:80', /port: choose one of at least 1024/],
    ['connect EACCES /run/postgresql/.s.PGSQL.5432', /rights of the socket/],
    ["EACCES: permission denied, open '/var/orders.csv'", /file or folder: change its owner or its rights/],
    ["EACCES: permission denied, mkdir '/srv/.stockade'", /file or folder: change its owner or its rights/],
  ])('what to do if the system denies it: %s', (message, advice) => {
    const { lines } = explain(Object.assign(new Error(message), { code: 'EACCES' }));
    expect(lines).toEqual([`error: ${message}`, expect.stringMatching(advice)]);
  });

  test.each<[unknown, string]>([
    [undefined, 'error: failed without a message'],
    ['a text', 'error: a text'],
    [new Error(''), 'error: Error'],
  ])('anything may be thrown: %s', (thrown, line) => expect(explain(thrown).lines).toEqual([line]));

  test('exit codes', () => {
    expect(explain(new UsageError('no')).exitCode).toBe(2);
    expect(explain(new Interrupted('SIGINT')).exitCode).toBe(130);
    expect(explain(new CommanderError(0, 'commander.helpDisplayed', '(outputHelp)')).exitCode).toBe(0);
    expect(
      explain(new CommanderError(1, 'commander.unknownOption', "error: unknown option '--x'")),
    ).toMatchObject({
      exitCode: 2,
      lines: [],
      json: { error: { code: 'usage', message: "unknown option '--x'" } },
    });
  });
});

describe('a connection that was refused over TLS or by rights', () => {
  test.each([
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'Hostname/IP does not match', /another name/],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate in certificate chain', /sslrootcert/],
    ['EPROTO', 'wrong version number', /does not speak TLS/],
    [undefined, 'The server does not support SSL connections', /Set ssl on/],
    [undefined, "NOPERM this user has no permissions to run the 'x' command", /redis-users\.acl/],
    [undefined, "ERR The user executing the script can't access at least one of the keys", /KEY_PREFIX/],
  ])('%s: %s', (code, message, advice) => {
    const cause = Object.assign(new Error(message), code && { code });
    for (const error of [cause, new NotExecuted(`Redis can't be reached: ${message}`, cause)]) {
      expect(explain(error).lines[1], error.message).toMatch(advice);
    }
  });
});
