import type { Answer } from './transport.ts';

/** The problems that an operation may be answered with: a union with one member for each of its codes. */
export type Refusal<Problems, Code> = Code extends keyof Problems ? Problems[Code] : never;

/** The outcome of an answer: what `done` makes of its body, or the problem itself. */
export function outcomeOf(answer: Answer, done: (body: never) => object): never {
  return (answer.ok ? done(answer.body as never) : answer.problem) as never;
}
