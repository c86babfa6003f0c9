// A line of the last minute. The number beside it says the same in text, so screen readers skip the line.
import { svg } from './dom.js';

const POINTS = 60;
const WIDTH = 120;
const HEIGHT = 28;

export class Trend {
  #values = [];
  #line = svg('polyline', { fill: 'none', 'vector-effect': 'non-scaling-stroke' });
  #area = svg('polygon');
  element = svg(
    'svg',
    { class: 'trend', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    this.#area,
    this.#line,
  );

  add(value) {
    this.#values.push(value ?? 0);
    if (this.#values.length > POINTS) this.#values.shift();
    const most = Math.max(1, ...this.#values);
    const step = WIDTH / (POINTS - 1);
    const from = WIDTH - (this.#values.length - 1) * step;
    const points = this.#values.map((v, i) => {
      const y = HEIGHT - 2 - (v / most) * (HEIGHT - 4);
      return `${(from + i * step).toFixed(1)},${y.toFixed(1)}`;
    });
    this.#line.setAttribute('points', points.join(' '));
    this.#area.setAttribute(
      'points',
      [`${from.toFixed(1)},${HEIGHT}`, ...points, `${WIDTH},${HEIGHT}`].join(' '),
    );
  }
}
