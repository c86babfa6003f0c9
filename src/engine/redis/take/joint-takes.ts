import { chunksOf } from '../../../lib/chunks-of.ts';
import type { TakeReply } from '../../contract.ts';
import { MAX_BATCH_ORDERS } from '../../limits.ts';
import type { RawTakeReply, Scripts, SegmentTake } from '../protocol/scripts.ts';
import type { TakeConnection } from './take-connection.ts';

/** From this number on, the takes of a turn are joined. Joining fewer gains nothing (docs/decisions/0002-takes.md). */
const JOINED_FROM = 32;
/** A take costs Redis about as much as this many of its orders, however few it has. */
const ORDERS_WORTH = 4;

interface Gathered {
  readonly take: SegmentTake;
  readonly resolve: (reply: TakeReply) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends the takes that the lanes make in one turn of the event loop as one command, if there are many: in a crowd over many sales
 * each take has few orders, and then a command costs a node more than its work costs Redis. No command is longer than the largest
 * take, because Redis does nothing else meanwhile.
 *
 * If the command fails as a whole, each of its takes fails as if it had been sent alone.
 */
export class JointTakes {
  readonly #connection: TakeConnection;
  readonly #scripts: Scripts;
  #gathered: Gathered[] = [];

  constructor(connection: TakeConnection, scripts: Scripts) {
    this.#connection = connection;
    this.#scripts = scripts;
  }

  /** @throws as `TakeStore.take` */
  take(take: SegmentTake): Promise<TakeReply> {
    take.batch.sending?.(take.batch.orders, this.#connection.server);
    return new Promise((resolve, reject) => {
      // All lanes of the turn come before that.
      if (this.#gathered.length === 0) process.nextTick(() => this.#sendAll());
      this.#gathered.push({ take, resolve, reject });
    });
  }

  #sendAll(): void {
    const gathered = this.#gathered;
    this.#gathered = [];
    const sizeOf = ({ take }: Gathered) => take.batch.orders.length + ORDERS_WORTH;
    const most = gathered.length < JOINED_FROM ? 0 : MAX_BATCH_ORDERS + ORDERS_WORTH;
    for (const command of chunksOf(gathered, most, sizeOf)) void this.#send(command);
  }

  async #send(command: readonly Gathered[]): Promise<void> {
    try {
      const takes = command.map(({ take }) => take);
      const replies = await this.#connection.attempt(() => this.#scripts.takes(takes));
      for (const [i, gathered] of command.entries()) this.#settle(gathered, replies[i]!);
    } catch (error) {
      for (const { reject } of command) reject(error);
    }
  }

  #settle({ take, resolve, reject }: Gathered, reply: RawTakeReply | Error): void {
    try {
      if (reply instanceof Error) throw this.#connection.failure(reply);
      resolve(this.#connection.decode(reply, take.batch.orders.length));
    } catch (error) {
      reject(error);
    }
  }
}
