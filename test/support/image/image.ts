/**
 * The Dockerfile without a container engine: its steps, run in folders that are the root of their processes. The programs of this
 * machine take the place of the base image. Needs root, and the right to create namespaces.
 */
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Instruction, type Stage, stagesOf } from './dockerfile.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const ENTER = fileURLToPath(new URL('./enter.sh', import.meta.url));
const STEP_LIMIT_MS = 600_000;
const IN_NAMESPACE = ['--mount', '--pid', '--fork', '--kill-child'];

/** Why images can't be built here; `undefined` if they can. */
export function whyNoImages(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux';
  if (!process.execPath.startsWith('/usr/')) return `needs Node in /usr, and it is ${process.execPath}`;
  const { status } = spawnSync('unshare', [...IN_NAMESPACE, 'true']);
  return status === 0 ? undefined : 'needs the right to create namespaces';
}

export interface Container {
  readonly env?: Readonly<Record<string, string>>;
  /** Adds a volume for /var/lib/stockade, which the image's user owns. */
  readonly volume?: boolean;
}

export class Image implements Disposable {
  readonly #folder: string;
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly #final: Stage;

  private constructor(folder: string, root: string, env: Readonly<Record<string, string>>, final: Stage) {
    this.#folder = folder;
    this.root = root;
    this.env = env;
    this.#final = final;
  }

  static async build(): Promise<Image> {
    const folder = mkdtempSync(join(tmpdir(), 'stockade-image-'));
    chmodSync(folder, 0o755);
    try {
      const stages = stagesOf(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'));
      const roots = new Map<string, string>();
      let built: { root: string; env: Record<string, string> } | undefined;
      for (const [i, stage] of stages.entries()) {
        const root = join(folder, stage.name ?? `stage-${i}`);
        mkdirSync(root, { mode: 0o755 });
        built = { root, env: await run(stage, root, roots) };
        if (stage.name) roots.set(stage.name, root);
      }
      return new Image(folder, built!.root, built!.env, stages.at(-1)!);
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get entrypoint(): string[] {
    return JSON.parse(this.#only('ENTRYPOINT').text);
  }

  get command(): string[] {
    return JSON.parse(this.#only('CMD').text);
  }

  get healthcheck(): string[] {
    return JSON.parse(/CMD (\[.*\])$/.exec(this.#only('HEALTHCHECK').text)![1]!);
  }

  /** A program, with its arguments, that becomes `command` in a container: read-only, as the image's user, as process 1. */
  inContainer(command: readonly string[], { volume = false }: Container = {}): string[] {
    const [uid, gid] = this.#only('USER').text.split(':').map(Number) as [number, number];
    const place = `${this.root}.volume`;
    rmSync(place, { recursive: true, force: true });
    if (volume) {
      mkdirSync(place);
      chownSync(place, uid, gid);
    }
    const user = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs'];
    const rights = ['--bounding-set=-all', '--inh-caps=-all'];
    const own = ['/usr/bin/setpriv', ...user, ...rights, ...command];
    return ['unshare', ...IN_NAMESPACE, 'sh', ENTER, this.root, 'ro', ...own];
  }

  /** Runs a command to its end, beside the others. */
  async run(command: readonly string[], options: Container = {}): Promise<{ code: number; stdout: string }> {
    const [program, ...args] = this.inContainer(command, options);
    try {
      const { stdout } = await promisify(execFile)(program!, args, { env: this.envOf(options) });
      return { code: 0, stdout };
    } catch (error) {
      const { code, stdout } = error as { code: number; stdout: string };
      return { code, stdout };
    }
  }

  envOf({ env = {} }: Container): Record<string, string> {
    return { ...this.env, ...env };
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #only(name: Instruction['name']): Instruction {
    const found = this.#final.instructions.filter((each) => each.name === name);
    if (found.length !== 1) throw new Error(`the last stage has ${found.length} times ${name}`);
    return found[0]!;
  }
}

/** @returns the stage's environment */
async function run(
  { instructions }: Stage,
  root: string,
  roots: ReadonlyMap<string, string>,
): Promise<Record<string, string>> {
  const env: Record<string, string> = { PATH: '/usr/local/bin:/usr/bin:/bin' };
  let workdir = '/';
  for (const { name, text } of instructions) {
    if (name === 'WORKDIR') {
      workdir = text;
      mkdirSync(join(root, workdir), { recursive: true });
    } else if (name === 'ENV') {
      for (const [, key, value] of text.matchAll(/(\w+)=(\S+)/g))
        env[key!] = value!.replaceAll(/\$(\w+)/g, (_, other: string) => env[other] ?? '');
    } else if (name === 'COPY') copy(text, join(root, workdir), root, roots);
    else if (name === 'RUN') await runStep(text, root, workdir, env);
  }
  return env;
}

function copy(text: string, workdir: string, root: string, roots: ReadonlyMap<string, string>): void {
  const [, stage, rest] = /^(?:--from=(\S+) )?(.*)$/.exec(text)!;
  const words = rest!.split(' ');
  const target = words.at(-1)!;
  const sources = words.slice(0, -1);
  const from = stage === undefined ? ROOT : roots.get(stage)!;
  const to = target.startsWith('/') ? join(root, target) : join(workdir, target);
  for (const source of sources) {
    if (stage === undefined) refuseIgnored(source);
    const into = target.endsWith('/') ? join(to, basename(source)) : to;
    mkdirSync(dirname(into), { recursive: true });
    cpSync(join(from, source), into, { recursive: true, verbatimSymlinks: true });
  }
}

/** What .dockerignore leaves out is not there for a COPY. */
function refuseIgnored(source: string): void {
  const lines = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n');
  if (lines[1] !== '*') throw new Error('.dockerignore must leave out everything that it does not name');
  if (!lines.includes(`!${source}`)) throw new Error(`.dockerignore leaves out ${source}, which is copied`);
}

async function runStep(
  step: string,
  root: string,
  workdir: string,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const { stdout: cache } = await promisify(execFile)('npm', ['config', 'get', 'cache']);
  const inside = ['rw', '/bin/sh', '-c', `cd ${workdir} && ${step}`];
  const args = [...IN_NAMESPACE, 'sh', ENTER, root, ...inside];
  // How this machine reaches the registry.
  const names = Object.keys(process.env).filter((name) =>
    /^(npm_config_|https?_proxy|no_proxy|node_extra_ca)/i.test(name),
  );
  const network = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  await promisify(execFile)('unshare', args, {
    env: { ...network, ...env, HOME: '/root', NPM_CACHE: cache.trim(), npm_config_cache: '/root/.npm' },
    timeout: STEP_LIMIT_MS,
    maxBuffer: 16 * 1024 * 1024,
  });
}
