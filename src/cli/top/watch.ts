import { rest } from '../../lib/rest.ts';
import type { ConsolePicture, ConsoleQuery } from '../../operations/console/console-operations.ts';
import type { OpsClient } from '../command/ops-client.ts';
import { describe } from '../terminal/explain.ts';

const RETRY_MS = 1_000;

/** A picture, or why there is none now. */
export type Seen = { readonly picture: ConsolePicture } | { readonly lost: string };

/**
 * Pictures until the signal. If the connection is lost, it is made again, until there is a node again.
 * @throws why the first picture can't be had
 */
export async function* watch(
  client: Pick<OpsClient, 'pictures'>,
  query: ConsoleQuery,
  signal: AbortSignal,
  retryMs = RETRY_MS,
): AsyncGenerator<Seen> {
  let hasSeen = false;
  while (!signal.aborted) {
    try {
      for await (const picture of client.pictures(query, signal)) {
        hasSeen = true;
        yield { picture };
      }
      if (!signal.aborted) yield { lost: 'the node has ended its pictures' };
    } catch (error) {
      if (!hasSeen) throw error;
      yield { lost: describe(error) };
    }
    await rest(retryMs, signal);
  }
}
