/** How many cores the wanted rate needs, by the processor time that this rehearsal has measured. What was not seen is not guessed. */
import { number, plural } from '../../terminal/output.ts';
import type { Plan } from '../crowd/plan.ts';
import type { Totals } from './figures.ts';

/** Share of a core that may be in use, so that a busy moment finds room. */
const ALLOWED_USE = 0.6;

export interface Size {
  readonly what: string;
  /** `undefined`: not measured. */
  readonly cores: number | undefined;
  readonly text: string;
}

/** @param sold orders of the rehearsal */
export function sizesOf({ rate }: Plan, { nodeMicros, redisMicros, requests }: Totals, sold: number): Size[] {
  const mix = `a mix as here: ${plural(sold, 'order')} for ${number(requests)} requests`;
  return [
    size('cores of nodes', nodeMicros, rate, mix),
    size('cores of Redis', redisMicros, rate, mix),
    { what: 'cores of Postgres', cores: undefined, text: 'not measured: a client can’t see them' },
  ];
}

function size(what: string, micros: number | undefined, rate: number, mix: string): Size {
  if (micros === undefined) return { what, cores: undefined, text: 'not measured' };
  const cores = Math.max(0.01, (rate * micros) / 1e6 / ALLOWED_USE);
  const shown = cores.toFixed(cores < 1 ? 2 : 1);
  return {
    what,
    cores: Number(shown),
    text: `${shown} for ${number(rate)} requests/s: ${micros.toFixed(0)} µs a request, at most ${ALLOWED_USE * 100} % of each in use, and ${mix}`,
  };
}
