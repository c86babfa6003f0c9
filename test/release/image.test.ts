/** The Dockerfile: its steps are run, and the node starts from what they have made as it would in a container. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OpsClient } from '../../src/cli/command/ops-client.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { BY } from '../support/author.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../support/fixtures.ts';
import { type Container, Image, whyNoImages } from '../support/image/image.ts';
import { ServerProcess } from '../support/servers/process/server-process.ts';

const SALE = 'tickets';
const why = whyNoImages();

/** The node in a container. `unshare` stays outside as its parent, and passes on no signals. */
class ContainedNode implements AsyncDisposable {
  readonly #process: ServerProcess;
  place: { pid: number; publicUrl: string; opsUrl: string } | undefined;

  private constructor(process: ServerProcess) {
    this.#process = process;
  }

  static async start(image: Image, options: Container): Promise<ContainedNode> {
    const process = await ServerProcess.create({ name: 'stockade-image', lastSignal: 'KILL' });
    const node = new ContainedNode(process);
    const whole = [...image.entrypoint, ...image.command, '--json'];
    const [program, ...args] = image.inContainer(whole, options);
    try {
      await process.launch(program!, args, () => node.#isReady(), image.envOf(options));
      return node;
    } catch (error) {
      await node[Symbol.asyncDispose]();
      throw error;
    }
  }

  get isUp(): boolean {
    return this.#process.isUp;
  }

  get lastEnd(): string {
    return this.#process.lastEnd;
  }

  /** The process that is number 1 in its container, by its number here. */
  get hostPid(): number {
    const { pid } = this.#process;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
  }

  log(): Promise<string> {
    return this.#process.log();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // With `unshare` alone, the node would go on: it is another user's process.
    if (this.isUp) process.kill(this.hostPid, 'SIGKILL');
    await this.#process.remove();
  }

  async #isReady(): Promise<boolean> {
    const line = (await this.log()).split('\n').find((each) => each.startsWith('{"ready":true'));
    if (line !== undefined) this.place = JSON.parse(line);
    return line !== undefined;
  }
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sum + sizeOf(path);
    return sum + (entry.isFile() ? statSync(path).size : 0);
  }, 0);
}

describe.skipIf(why !== undefined)(`the image${why === undefined ? '' : ` (skipped: it ${why})`}`, () => {
  let image: Image;
  beforeAll(async () => {
    image = await Image.build();
  }, 900_000);
  afterAll(() => image?.[Symbol.dispose]());

  const withStores = async (more: Record<string, string> = {}) => ({
    env: {
      ...{ REDIS_URL: redisUrl(), DATABASE_URL: await freshDatabase(), KEY_PREFIX: freshPrefix() },
      ...{ HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', WORKERS: '1' },
      ...{ OPS_TOKEN: randomBytes(18).toString('hex'), ...more },
    },
  });

  test('holds the program and what it runs with, and nothing else', () => {
    const app = join(image.root, 'app');
    const expected = ['LICENSE', 'bin', 'deploy', 'dist', 'docs', 'node_modules', 'package.json'];
    expect(readdirSync(app).sort()).toEqual(expected);
    const packages = readdirSync(join(app, 'node_modules'));
    expect(packages).toContain('ioredis');
    expect(packages).not.toContain('typescript');
    expect(readdirSync(join(app, 'node_modules/uWebSockets.js/dist/bin'))).toHaveLength(1);
    expect(sizeOf(app) / 1e6).toBeLessThan(110);
    const secret = /TOKEN|SECRET|PASSWORD|_URL/;
    expect(Object.keys(image.env).filter((name) => secret.test(name))).toEqual([]);
  });

  test('its command is on the path', async () => {
    const { version } = JSON.parse(readFileSync(join(image.root, 'app/package.json'), 'utf8'));
    expect(await image.run(['stockade', '--version'])).toEqual({ code: 0, stdout: `${version}\n` });
  });

  test('without a setting for buyers it does not start', async () => {
    const { code } = await image.run([...image.entrypoint, ...image.command], {
      env: { OPS_TOKEN: 'x'.repeat(20) },
    });
    expect(code).toBe(2);
  });

  test('sells as process 1, as another user, on a root that can’t be written, and stops at SIGTERM', async () => {
    const options = await withStores();
    await using node = await ContainedNode.start(image, options);
    expect(node.place!.pid).toBe(1);
    const status = readFileSync(`/proc/${node.hostPid}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\s+1000\s+1000\s+1000\s+1000$/m);
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);

    const { opsUrl, publicUrl } = node.place!;
    const ops = new OpsClient(loadConfig({ OPS_URL: opsUrl, OPS_TOKEN: options.env.OPS_TOKEN }, {}));
    await ops.create({ id: SALE, stock: 5 }, BY.actor);
    const headers = { 'x-buyer-id': 'anna' };
    const bought = await fetch(`${publicUrl}/v1/sales/${SALE}/orders`, { method: 'POST', headers });
    expect(bought.status).toBe(201);
    for (const url of [publicUrl, opsUrl]) expect((await fetch(`${url}/openapi.json`)).status).toBe(200);
    await ops.disconnect();
    for (const path of ['/openapi.json', '/docs', '/problems/sold_out'])
      expect((await fetch(publicUrl + path)).status, path).toBe(200);

    const check = () => image.run(image.healthcheck, { env: { OPS_PORT: new URL(opsUrl).port } });
    expect((await check()).code).toBe(0);
    process.kill(node.hostPid, 'SIGTERM');
    await until(() => !node.isUp, { what: 'it ends' });
    expect(node.lastEnd, await node.log()).toBe('exit code 0');
    expect((await check()).code).toBe(1);
  });

  test('a second signal ends process 1 at once', async () => {
    await using node = await ContainedNode.start(image, await withStores({ STOP_DELAY_MS: '600000' }));
    process.kill(node.hostPid, 'SIGTERM');
    await until(async () => (await node.log()).includes('still selling'), { what: 'it leaves' });
    process.kill(node.hostPid, 'SIGTERM');
    await until(() => !node.isUp, { what: 'it ends' });
    expect(node.lastEnd).not.toBe('exit code 0');
  });

  test('without OPS_TOKEN it keeps one in the volume, the only place that it writes to', async () => {
    const { env } = await withStores();
    const { OPS_TOKEN: _, ...others } = env;
    await using node = await ContainedNode.start(image, { env: others, volume: true });
    const folder = join(`${image.root}.volume`, 'data');
    expect(readdirSync(folder)).toEqual(['ops-token']);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(folder).uid).toBe(1000);
    const token = readFileSync(join(folder, 'ops-token'), 'utf8').trim();
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${node.place!.opsUrl}/v1/sales`, { headers })).status).toBe(200);
  });
});
