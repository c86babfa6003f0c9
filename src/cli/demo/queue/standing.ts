/** How the sale and its queue stand, for the picture at the terminal and for the page. */
import type { OperatorClient, Place } from '../../../client/index.ts';
import { number } from '../../terminal/output.ts';
import type { Crowd } from './crowd.ts';
import type { QueuePlan } from './plan.ts';

export interface Standing {
  readonly stock: number;
  /** Until the window opens; 0: it is open. */
  readonly opensInMs: number;
  /** Places whose turn may come. */
  readonly waiting: number;
  /** Places that wait although the places ahead could take all units. They get one if others give their offers back. */
  readonly hopeless: number;
  readonly offered: number;
  readonly bought: number;
  readonly givenBack: number;
  readonly lapsed: number;
  /** Of one person in the crowd. */
  readonly shown?: Pick<Place, 'number' | 'state' | 'rank' | 'ahead'>;
  /** Set at the end: how it went, in words. */
  readonly verdict?: { readonly holds: boolean; readonly text: string };
}

/** @param opensAtMs Unix time in milliseconds */
export async function readStanding(
  operator: OperatorClient,
  saleId: string,
  plan: QueuePlan,
  crowd: Crowd,
  opensAtMs: number,
): Promise<Standing> {
  const found = await operator.queue(saleId, true);
  if (found.code !== 'found') throw new Error(`the queue can't be read: ${found.code}`);
  if (found.queue.phase === 'closed') throw new Error(`somebody has closed the sale ${saleId}`);
  const { waiting = 0, offered = 0, bought = 0, lapsed = 0, left = 0 } = found.queue.counts ?? {};
  const known = crowd.seen.filter(({ place }) => place?.state === 'hopeless').length;
  // The last ones are told so a moment after the last unit is sold.
  const hopeless = bought >= plan.stock ? waiting : Math.min(waiting, known);
  const { place } = crowd.shown;
  return {
    stock: plan.stock,
    opensInMs: Math.max(0, opensAtMs - Date.now()),
    waiting: waiting - hopeless,
    ...{ hopeless, offered, bought, lapsed, givenBack: left },
    ...(place && {
      shown: {
        ...{ number: place.number, state: place.state },
        ...(place.rank !== undefined && { rank: place.rank }),
        ...(place.ahead !== undefined && { ahead: place.ahead }),
      },
    }),
  };
}

/** In one line, where no picture can be drawn. */
export function standingText(standing: Standing): string {
  const { opensInMs, waiting, hopeless, offered, bought } = standing;
  const people = `${number(waiting)} waiting, ${number(offered)} with an offer, ${number(hopeless)} without a chance now`;
  const opening = opensInMs > 0 ? `opens in ${Math.ceil(opensInMs / 1_000)} s; ` : '';
  return `  ${opening}units: ${number(unitsFree(standing))} free, ${number(bought)} sold; people: ${people}`;
}

export const unitsFree = ({ stock, bought, offered }: Standing): number =>
  Math.max(0, stock - bought - offered);
