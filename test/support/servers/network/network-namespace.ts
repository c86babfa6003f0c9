/**
 * A machine of its own for a node: a network namespace of Linux, with one cable to this machine. Servers on 127.0.0.1 of this
 * machine can't be reached from it, only what listens at `hostAddress`.
 */
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';

const PREFIX = 30;

export class NetworkNamespace implements Disposable {
  /** The address of this machine at its end of the cable. */
  readonly hostAddress: string;
  /** The address of programs in the namespace. */
  readonly address: string;
  readonly #name: string;

  private constructor(name: string, network: string) {
    this.#name = name;
    this.hostAddress = `${network}.1`;
    this.address = `${network}.2`;
  }

  /** @throws Error with the message of `ip`, if this process may not create namespaces */
  static create(): NetworkNamespace {
    // Other test runs on this machine may create some too.
    const number = randomInt(1, 2 ** 16);
    const network = `10.${200 + (number >> 12)}.${(number >> 4) & 255}`;
    const name = `stockade${number}`;
    const [here, there] = [`sk${number}h`, `sk${number}n`];
    const namespace = new NetworkNamespace(name, network);
    run('ip', 'netns', 'add', name);
    try {
      run('ip', 'link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name);
      run('ip', 'address', 'add', `${namespace.hostAddress}/${PREFIX}`, 'dev', here);
      run('ip', 'link', 'set', here, 'up');
      const inside = (...words: string[]) => run(...namespace.launcher, 'ip', ...words);
      inside('address', 'add', `${namespace.address}/${PREFIX}`, 'dev', there);
      inside('link', 'set', there, 'up');
      inside('link', 'set', 'lo', 'up');
      return namespace;
    } catch (error) {
      namespace[Symbol.dispose]();
      throw error;
    }
  }

  /** Before the words of a command: it then runs in the namespace, in the same process. */
  get launcher(): readonly [string, ...string[]] {
    return ['ip', 'netns', 'exec', this.#name];
  }

  /** Removes the namespace; the cable goes with it. */
  [Symbol.dispose](): void {
    spawnSync('ip', ['netns', 'delete', this.#name]);
  }
}

/** Why this process can't create namespaces; `undefined` if it can. */
export function whyNoNamespaces(): string | undefined {
  try {
    NetworkNamespace.create()[Symbol.dispose]();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function run(...[program, ...words]: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program!, words, { encoding: 'utf8' });
  if (status === 0) return;
  throw new Error(`${[program, ...words].join(' ')} failed: ${error?.message ?? stderr.trim()}`);
}
