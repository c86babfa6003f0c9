/**
 * Judges the places of a sale's queue (place-counts.ts):
 *
 *   places given = waiting + offered + bought + lapsed + left
 */
import { counted } from '../lib/counted.ts';
import { PLACE_STATES } from '../operations/queue/queue-operations.ts';
import type { Identity } from '../operations/verify-report.ts';
import type { PlaceCounts, WrongPlace } from '../queue/place-counts.ts';
import { type Finding, fault, identity, term } from './finding.ts';

export function placeIdentity({ given, states }: PlaceCounts): Identity {
  return identity(
    'every place of the queue is in one state',
    [term('given', given)],
    PLACE_STATES.map((state) => term(state, states[state])),
  );
}

export function judgePlaces(counts: PlaceCounts): Finding[] {
  const { given, wrong, wrongCount, strayOffers } = counts;
  const { difference } = placeIdentity(counts);
  return [
    ...(difference === 0
      ? []
      : [
          fault(
            'foreign_postgres',
            0,
            `the queue has given ${counted(given, 'place')}, and ${given - difference} are stored: places were deleted or added`,
          ),
        ]),
    ...(wrongCount === 0
      ? []
      : [
          fault('foreign_postgres', 0, wrongText(wrong, wrongCount), {
            kind: 'places',
          }),
        ]),
    ...(strayOffers === 0
      ? []
      : [
          fault(
            'foreign_postgres',
            0,
            `no place has the ${counted(strayOffers, 'offer')}: places were changed`,
            { kind: 'offers' },
          ),
        ]),
  ];
}

function wrongText(wrong: readonly WrongPlace[], count: number): string {
  const named = wrong.map(({ number, state, order, proven }) =>
    proven === null
      ? `place ${number} is ${state}, and there is no order ${order} of it`
      : `place ${number} is ${state}, and its order ${order} proves ${proven}`,
  );
  const more = count > wrong.length ? `; ${count - wrong.length} more` : '';
  return `${named.join('; ')}${more}`;
}
