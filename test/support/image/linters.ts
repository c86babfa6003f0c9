/**
 * Programs that check files of deploy/, for the tests of a release. They are installed from the registry into a folder for
 * temporary files, so that nobody needs them to work on the program.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const PACKAGES = { yaml: '2.9.1', 'kubernetes-models': '5.1.0', 'dockerfile-utils': '0.16.3' };
const LIMIT_MS = 300_000;

export class Linters implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'stockade-linters-'));

  static async install(): Promise<Linters> {
    const linters = new Linters();
    const wanted = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`);
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--silent'];
    const args = ['install', ...options, '--prefix', linters.folder, ...wanted];
    await promisify(execFile)('npm', args, { cwd: linters.folder, timeout: LIMIT_MS });
    return linters;
  }

  /** @param name of the package, and of the part of it */
  // biome-ignore lint/suspicious/noExplicitAny: the types of these packages are not installed where the tests are checked.
  async load(name: string, part = ''): Promise<any> {
    // From a file in that folder, as Node resolves it: the packages name what they export.
    const resolve = `import.meta.resolve(${JSON.stringify(join(name, part))})`;
    const args = ['--input-type=module', '--eval', `process.stdout.write(${resolve})`];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: this.folder });
    return import(stdout || pathToFileURL(this.folder).href);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
