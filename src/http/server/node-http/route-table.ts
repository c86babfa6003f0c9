/** Finds the route of a path by the rules of uWebSockets.js: a fixed segment wins over a parameter; a parameter is never empty. */
import type { Method, Serve } from '../http-server.ts';

export interface Route {
  /** By method in upper case; `any` for all other methods. */
  readonly serves: Map<string, Serve>;
  /** The fixed segments of the pattern, with `undefined` for each parameter. */
  readonly segments: readonly (string | undefined)[];
}

export class RouteTable {
  /** By the number of segments; routes with fewer parameters come first. */
  readonly #routes: Route[][] = [];
  #otherwise: Route = { serves: new Map(), segments: [] };

  add(method: Method | 'any', pattern: string, serve: Serve): void {
    this.#routeOf(pattern).serves.set(method === 'any' ? method : method.toUpperCase(), serve);
  }

  /** @param segments of the path @returns the route of `/*` if there is no other */
  find(segments: readonly string[]): Route {
    return this.#routes[segments.length]?.find((route) => matches(route, segments)) ?? this.#otherwise;
  }

  #routeOf(pattern: string): Route {
    if (pattern === '/*') return this.#otherwise;
    const segments = pattern.split('/').map((segment) => (segment.startsWith(':') ? undefined : segment));
    this.#routes[segments.length] ??= [];
    const routes = this.#routes[segments.length]!;
    const known = routes.find((route) => route.segments.join('/') === segments.join('/'));
    if (known) return known;
    const route: Route = { serves: new Map(), segments };
    routes.push(route);
    routes.sort((a, b) => parameters(a) - parameters(b));
    return route;
  }
}

/** The values that a path has for the parameters of its route. */
export function valuesOf(route: Route, segments: readonly string[]): string[] {
  return segments.filter((_, i) => route.segments[i] === undefined);
}

function parameters({ segments }: Route): number {
  return segments.filter((segment) => segment === undefined).length;
}

function matches(route: Route, segments: readonly string[]): boolean {
  for (let i = 0; i < segments.length; i++) {
    const wanted = route.segments[i];
    if (wanted === undefined ? segments[i] === '' : segments[i] !== wanted) return false;
  }
  return true;
}
