import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { lockDataDir } from '../../../../src/node/process/data-lock.ts';

/** What one look at the folder finds instead of what is there. */
const stale = vi.hoisted(() => ({ names: [] as string[] }));

vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof import('node:fs')>();
  const seen = () => stale.names.splice(0);
  return {
    ...fs,
    readdirSync(folder: string) {
      const names = seen();
      return names.length > 0 ? names : fs.readdirSync(folder);
    },
  };
});

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stockade-lock-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const locks = () => readdirSync(folder).filter((name) => name.startsWith('lock'));

/** A process that listens on this socket in the folder, as the holder of a lock does. */
async function holder(name: string, says = ''): Promise<ChildProcess> {
  const program =
    "const [path, says] = process.argv.slice(1); require('net').createServer((s) => s.end(says))" +
    ".listen(path, () => process.stdout.write('ready'))";
  const child = spawn(process.execPath, ['-e', program, join(folder, name), says], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout!, 'data');
  return child;
}

/** As in another process: this module does not know what the other has locked. */
async function inAnotherProcess(): Promise<typeof lockDataDir> {
  vi.resetModules();
  return (await import('../../../../src/node/process/data-lock.ts')).lockDataDir;
}

describe('the lock of a data folder', () => {
  test('keeps out other shops of this process, until it is released', async () => {
    const unlock = await lockDataDir(folder);
    await expect(lockDataDir(folder)).rejects.toMatchObject({
      code: 'data_dir_in_use',
      message: `${folder} is in use by another shop of this process; stop it, or set DATA_DIR to another directory`,
    });
    unlock();
    (await lockDataDir(folder))();
    expect(locks()).toEqual(['lock.2']);
    // Node's own function, for example, fails at a socket.
    cpSync(folder, `${folder}-copy`, { recursive: true });
    rmSync(`${folder}-copy`, { recursive: true });
  });

  test('keeps out other processes, which are told who holds it', async () => {
    const unlock = await lockDataDir(folder);
    const lock = await inAnotherProcess();
    await expect(lock(folder)).rejects.toThrow(`is in use by process ${process.pid} on `);
    unlock();
    (await lock(folder))();
  });

  test('is that of its process also while this is frozen, and free when it is killed', async () => {
    const child = await holder('lock.3');
    child.kill('SIGSTOP');
    await expect(lockDataDir(folder)).rejects.toThrow('is in use by another process');
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    const unlock = await lockDataDir(folder);
    expect(locks()).toEqual(['lock.4']);
    unlock();
  });

  test('is got by one of many who ask at the same time', async () => {
    const all = [];
    for (let i = 0; i < 12; i++) all.push(await inAnotherProcess());
    const results = await Promise.allSettled(all.map((lock) => lock(folder)));
    const got = results.filter((result) => result.status === 'fulfilled');
    expect(got).toHaveLength(1);
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'data_dir_in_use' });
    expect(locks()).toEqual(['lock.1']);
    got[0]!.value();
  });

  test('is respected by a process that looked long ago, and saw an earlier one', async () => {
    await holder('lock.7', 'process 7');
    stale.names.push('lock.5');
    await expect(lockDataDir(folder)).rejects.toThrow('is in use by process 7');
    expect(locks()).toEqual(['lock.7']);
  });

  test('is respected by a process that looked before it was there', async () => {
    await holder('lock.1', 'process 7');
    stale.names.push('pglite');
    await expect(lockDataDir(folder)).rejects.toThrow('is in use by process 7');
    expect(locks()).toEqual(['lock.1']);
  });

  test('can be had in a folder whose name is too long for the path of a socket', async () => {
    const long = join(folder, 'd'.repeat(150));
    mkdirSync(long);
    const unlock = await lockDataDir(long);
    await expect((await inAnotherProcess())(long)).rejects.toMatchObject({ code: 'data_dir_in_use' });
    unlock();
    expect(readdirSync(long)).toEqual(['lock.1']);
  });

  test('can be released although the folder is gone', async () => {
    const gone = join(folder, 'gone');
    const unlock = await lockDataDir(gone);
    rmSync(gone, { recursive: true });
    unlock();
    (await lockDataDir(gone))();
  });

  test('is not had while a process of an older version lives, which has written its id into a file', async () => {
    const file = join(folder, 'lock');
    writeFileSync(file, String(process.ppid));
    await expect(lockDataDir(folder)).rejects.toThrow(`is in use by process ${process.ppid};`);
    const child = spawn(process.execPath, ['-e', '']);
    await once(child, 'exit');
    writeFileSync(file, String(child.pid));
    (await lockDataDir(folder))();
    expect(existsSync(file)).toBe(false);
  });
});
