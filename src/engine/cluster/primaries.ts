/**
 * Maps slots to servers: the map that the cluster client keeps, which follows failovers and resharding. Takes do not
 * go through that client, because it would repeat a take whose reply was lost.
 */
import type { Cluster } from 'ioredis';
import { monotonicMs } from '../../lib/monotonic.ts';

/** The map is refreshed at most this often, however many takes fail. */
const REFRESH_MS = 100;

/**
 * Which of the servers were removed from the cluster. If all servers are lost at once, the map is empty for a moment: then none of
 * them was removed.
 * @param all the servers in the map
 */
export function removedFrom(all: ReadonlySet<string>, servers: Iterable<string>): string[] {
  return all.size === 0 ? [] : [...servers].filter((url) => !all.has(url));
}

export class Primaries {
  readonly #cluster: Cluster;
  readonly #url: string;
  #refreshedAt = Number.NEGATIVE_INFINITY;

  /** @param url of any server: its user, password, protocol and parameters apply to all */
  constructor(cluster: Cluster, url: string) {
    this.#cluster = cluster;
    this.#url = url;
  }

  /** The url of the server that has this slot; `undefined` while no server has it. */
  of(slot: number): string | undefined {
    const address = this.#cluster.slots[slot]?.[0];
    return address === undefined ? undefined : this.urlOf(address);
  }

  /** The urls of all servers that take writes. */
  all(): string[] {
    return this.#cluster.nodes('master').map(({ options: { host, port } }) => this.urlOf(`${host}:${port}`));
  }

  /** Refreshes the map. Resolves after the attempt, or at once if the last one was a moment ago. */
  async refresh(): Promise<void> {
    const now = monotonicMs();
    if (now - this.#refreshedAt < REFRESH_MS) return;
    this.#refreshedAt = now;
    await new Promise<void>((resolve) => this.#cluster.refreshSlotsCache(() => resolve()));
  }

  /** @param asked url of the server that gave the address: its host applies if the address has none */
  urlOf(address: string, asked = this.#url): string {
    const at = address.lastIndexOf(':');
    const [host, port] = [address.slice(0, at), address.slice(at + 1)];
    const url = new URL(this.#url);
    if (host === '') url.host = `${new URL(asked).hostname}:${port}`;
    else url.host = host.includes(':') ? `[${host}]:${port}` : address;
    return url.href;
  }
}
