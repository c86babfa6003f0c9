/**
 * Certificates for servers of tests. openssl makes them when they are needed, so none is in the repository and none
 * can expire.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Paths of PEM files. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** The certificate of the authority that has signed it. */
  readonly authority: string;
}

/** An authority that signs certificates. Disposing removes them. */
export class Authority implements AsyncDisposable {
  readonly certificate: string;
  readonly #directory: string;
  readonly #key: string;

  private constructor(directory: string) {
    this.#directory = directory;
    this.certificate = join(directory, 'authority.crt');
    this.#key = join(directory, 'authority.key');
  }

  static async create(): Promise<Authority> {
    const authority = new Authority(await mkdtemp(join(tmpdir(), 'authority-')));
    await openssl([
      ...['req', '-x509', ...NEW_KEY, '-keyout', authority.#key, '-out', authority.certificate],
      ...['-days', '2', '-subj', '/CN=authority of a test'],
    ]);
    return authority;
  }

  /**
   * @param names as openssl writes them: `IP:127.0.0.1,DNS:localhost`
   * @param days until it expires; -1: it has expired
   */
  async sign(label: string, names: string, days = 2): Promise<Certificate> {
    const file = (ending: string) => join(this.#directory, `${label}.${ending}`);
    const [cert, key, request, extensions] = [file('crt'), file('key'), file('csr'), file('ext')];
    await openssl(['req', ...NEW_KEY, '-keyout', key, '-out', request, '-subj', `/CN=${label}`]);
    await writeFile(extensions, `subjectAltName=${names}\n`);
    await openssl([
      ...['x509', '-req', '-in', request, '-out', cert, '-days', String(days), '-extfile', extensions],
      ...['-CA', this.certificate, '-CAkey', this.#key, '-CAcreateserial'],
    ]);
    return { cert, key, authority: this.certificate };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.#directory, { recursive: true });
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

async function openssl(args: string[]): Promise<void> {
  await promisify(execFile)('openssl', args);
}
