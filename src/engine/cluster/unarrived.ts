import type { SendAll } from '../../redis/send-all.ts';
import type { SegmentRef } from '../contract.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import { decodeTransfer } from './transfer-scripts.ts';

/**
 * Units of an open transfer that have not arrived at the receiver.
 * @param record the donor's record of the transfer; `''` or missing if none is open
 * @throws if the receiver's server does not answer
 */
export async function unarrived(
  sendAll: SendAll,
  keys: Keys,
  donor: Pick<SegmentRef, 'saleId' | 'segment'>,
  record: string | null | undefined,
): Promise<number> {
  if (!record) return 0;
  const { seq, receiver, units } = decodeTransfer(record);
  const key = keys.segment({ saleId: donor.saleId, segment: receiver }).segment;
  const [reply] = await sendAll([['hget', key, `from:${donor.segment}`]]);
  const [error, arrived] = reply!;
  // A key of another type, for which there is a reply error, has received nothing.
  if (error && error.name !== 'ReplyError') throw error;
  return Number(arrived ?? 0) >= Number(seq) ? 0 : units;
}
