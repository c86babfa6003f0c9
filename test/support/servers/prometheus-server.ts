/** A Prometheus that scrapes targets each second and judges deploy/prometheus/alerts.yml. */
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findServer } from '../../../scripts/servers.mjs';
import { freePort } from './process/free-port.ts';
import { ServerProcess } from './process/server-process.ts';

const RULES = fileURLToPath(new URL('../../../deploy/prometheus/alerts.yml', import.meta.url));

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  /** Unix seconds, and the value. */
  readonly value: readonly [number, string];
}

export class PrometheusServer implements AsyncDisposable {
  readonly url: string;
  readonly #process: ServerProcess;

  private constructor(process: ServerProcess, url: string) {
    this.#process = process;
    this.url = url;
  }

  /** @param targets addresses of ops ports: `127.0.0.1:9090` */
  static async start(targets: readonly string[], token: string): Promise<PrometheusServer> {
    const folder = findServer('prometheus');
    if (!folder) throw new Error('Prometheus not found: run `node scripts/ensure-servers.mjs prometheus`');
    const process = await ServerProcess.create({ name: 'prometheus', lastSignal: 'KILL' });
    const port = await freePort();
    const server = new PrometheusServer(process, `http://127.0.0.1:${port}`);
    const at = (name: string) => join(process.directory, name);
    await copyFile(RULES, at('alerts.yml'));
    await writeFile(at('token'), token, { mode: 0o600 });
    const job = {
      job_name: 'stockade',
      authorization: { credentials_file: at('token') },
      static_configs: [{ targets }],
    };
    const config = {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [at('alerts.yml')],
      scrape_configs: [job],
    };
    // JSON is YAML.
    await writeFile(at('prometheus.yml'), JSON.stringify(config));
    const args = [
      `--config.file=${at('prometheus.yml')}`,
      `--storage.tsdb.path=${at('data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    try {
      await process.launch(join(folder, 'prometheus'), args, () => server.#isReady());
      return server;
    } catch (error) {
      await process.remove();
      throw error;
    }
  }

  /** @throws if the query is not valid */
  async query(expr: string): Promise<Series[]> {
    const answer = await fetch(`${this.url}/api/v1/query`, {
      method: 'POST',
      body: new URLSearchParams({ query: expr }),
    });
    const { data, error } = (await answer.json()) as { data?: { result: Series[] }; error?: string };
    if (!data) throw new Error(`${expr}: ${error}`);
    return data.result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.remove();
  }

  #isReady(): Promise<boolean> {
    return fetch(`${this.url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  }
}
