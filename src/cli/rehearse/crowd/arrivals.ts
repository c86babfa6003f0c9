/**
 * When the requests of a crowd are due. Each shape says how many requests a second are due at each moment, as a share of the
 * wanted rate, which is also the highest:
 *
 *   steady   the wanted rate, all the time
 *   rush     the wanted rate for the first fifth of the time; then it falls evenly, to a tenth at the end
 *   waves    five waves: in the first half of each the wanted rate, in the second half a tenth of it
 *
 * A crowd does not keep step. So the time is divided into equal parts, one for each request, and a request comes at a random moment
 * of its part.
 */
export const ARRIVALS = ['steady', 'rush', 'waves'] as const;
export type Arrivals = (typeof ARRIVALS)[number];

const LEAST_SHARE = 0.1;
const RUSH_SHARE = 0.2;
const WAVES = 5;

/** A stretch of the time, as shares of it from 0 to 1, in which the rate goes evenly from one share to another. */
interface Stretch {
  readonly until: number;
  readonly from: number;
  readonly to: number;
}

const SHAPES: Readonly<Record<Arrivals, readonly Stretch[]>> = {
  steady: [{ until: 1, from: 1, to: 1 }],
  rush: [
    { until: RUSH_SHARE, from: 1, to: 1 },
    { until: 1, from: 1, to: LEAST_SHARE },
  ],
  waves: Array.from({ length: 2 * WAVES }, (_, half) => {
    const share = half % 2 === 0 ? 1 : LEAST_SHARE;
    return { until: (half + 1) / (2 * WAVES), from: share, to: share };
  }),
};

export interface Crowding {
  readonly arrivals: Arrivals;
  /** Requests a second at the highest. */
  readonly rate: number;
  readonly seconds: number;
}

/** How many requests come in all. */
export function requestsOf({ arrivals, rate, seconds }: Crowding): number {
  return Math.max(1, Math.round(rate * seconds * areaOf(SHAPES[arrivals])));
}

/** @param random gives numbers from 0 to below 1 @returns when each request is due: milliseconds from the start, rising */
export function dueTimes(crowding: Crowding, random: () => number): Float64Array {
  const count = requestsOf(crowding);
  const stretches = SHAPES[crowding.arrivals];
  const area = areaOf(stretches);
  const due = new Float64Array(count);
  let [stretch, begin, before] = [0, 0, 0];
  for (let i = 0; i < count; i++) {
    const wanted = ((i + random()) / count) * area;
    while (stretch < stretches.length - 1 && before + areaOfOne(stretches[stretch]!, begin) <= wanted) {
      before += areaOfOne(stretches[stretch]!, begin);
      begin = stretches[stretch++]!.until;
    }
    due[i] = placeIn(stretches[stretch]!, begin, wanted - before) * crowding.seconds * 1_000;
  }
  return due;
}

function areaOf(stretches: readonly Stretch[]): number {
  return stretches.reduce((sum, one, i) => sum + areaOfOne(one, stretches[i - 1]?.until ?? 0), 0);
}

const areaOfOne = ({ until, from, to }: Stretch, begin: number) => ((from + to) / 2) * (until - begin);

/** Where the area of a stretch reaches this: its rate is `from + slope * x`, so the area is `from * x + slope * x * x / 2`. */
function placeIn({ until, from, to }: Stretch, begin: number, area: number): number {
  const slope = (to - from) / (until - begin);
  const x =
    slope === 0 ? area / from : (Math.sqrt(Math.max(0, from * from + 2 * slope * area)) - from) / slope;
  return Math.min(until, begin + x);
}
