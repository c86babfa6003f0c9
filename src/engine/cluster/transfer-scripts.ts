/**
 * The steps of a transfer between two servers, and the record that it leaves meanwhile. One typed function per
 * script.
 */
import type { Cluster } from 'ioredis';
import { BackendCorrupt } from '../errors.ts';
import { luaSource } from '../redis/protocol/lua-source.ts';
import { STALE } from '../redis/protocol/scripts.ts';

/** The donor's record of a transfer: units that have left it and may have reached the receiver. */
export interface OpenTransfer {
  /** Sequence number, rising per donor. */
  readonly seq: string;
  /** Number of the receiving segment. */
  readonly receiver: number;
  readonly units: number;
}

export type Debit =
  | { readonly kind: typeof STALE }
  | { readonly kind: 'empty' }
  /** A transfer begun now, or one open before, which may have another receiver and other units. */
  | { readonly kind: 'open'; readonly transfer: OpenTransfer };

function script(name: string) {
  return { lua: luaSource(`change/transfer-${name}`), numberOfKeys: 1 };
}

const SCRIPTS = { debit: script('debit'), credit: script('credit'), settle: script('settle') };

type Commands = Record<keyof typeof SCRIPTS, (...args: (string | number)[]) => Promise<unknown>>;

export class TransferScripts {
  readonly #cluster: Cluster;
  readonly #commands: Commands;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#commands = Object.fromEntries(
      Object.entries(SCRIPTS).map(([name, definition]) => {
        cluster.defineCommand(`stockade:transfer:${name}`, definition);
        const command = (cluster as unknown as Record<string, Commands['debit']>)[
          `stockade:transfer:${name}`
        ]!;
        return [name, command.bind(cluster)];
      }),
    ) as Commands;
  }

  async debit(donor: string, generation: number, receiver: number, units: number): Promise<Debit> {
    const reply = String(await this.#commands.debit(donor, generation, receiver, units));
    if (reply === STALE || reply === 'empty') return { kind: reply };
    return { kind: 'open', transfer: decodeTransfer(reply) };
  }

  /** @returns false if the receiver is missing in this generation; if true, it has the units */
  async credit(
    receiver: string,
    generation: number,
    donor: number,
    transfer: OpenTransfer,
  ): Promise<boolean> {
    const { seq, units } = transfer;
    return (await this.#commands.credit(receiver, generation, donor, seq, units)) !== STALE;
  }

  async raiseEpoch(sale: string): Promise<void> {
    await this.#cluster.hincrby(sale, 'epoch', 1);
  }

  async settle(donor: string, generation: number, { seq }: OpenTransfer): Promise<void> {
    await this.#commands.settle(donor, generation, seq);
  }
}

/** The field `out` of a segment. */
export function decodeTransfer(record: string): OpenTransfer {
  const parts = /^(\d+) (\d+) (\d+)$/.exec(record);
  if (!parts) throw new BackendCorrupt(`the record of a transfer is ${JSON.stringify(record)}`);
  return { seq: parts[1]!, receiver: Number(parts[2]), units: Number(parts[3]) };
}
