/** The settings of a queue as rows of a sheet: of `queue show`, and of all commands that show a sale. */
import type { QueueStatus } from '../../operations/queue/queue-operations.ts';
import { number } from '../terminal/output.ts';

/** In which order places get their turn. */
export const ORDERS = {
  fifo: 'first come, first served',
  draw: 'drawn when the window opens',
} as const;

const FITS = {
  wait: 'waits for more units',
  less: 'gets an offer of fewer',
  pass: 'is passed',
} as const;

type Settings = Pick<QueueStatus, 'offerSeconds' | 'presenceSeconds' | 'maxWaiting' | 'fit'>;

const secondsText = (seconds: number): string => `${number(seconds)} s`;

/** @param settings of a queue that is on: all are there. Otherwise none is, and there are no rows */
export function settingRows(settings: Settings): [string, string][] {
  const { offerSeconds, presenceSeconds, maxWaiting, fit } = settings;
  if (offerSeconds === undefined || maxWaiting === undefined || fit === undefined) return [];
  return [
    ['offers stand', secondsText(offerSeconds)],
    ['absent after', presenceSeconds ? secondsText(presenceSeconds) : 'never'],
    ['places at most', number(maxWaiting)],
    ['too few units', `the next place ${FITS[fit]}`],
  ];
}
