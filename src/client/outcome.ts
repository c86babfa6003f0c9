import type { Answer } from './transport.ts';

/** What a port may answer where it does not do what was asked, one member for each code that the operation has. */
export type Refusal<Problems, Code> = Code extends keyof Problems ? Problems[Code] : never;

/** The answer as an outcome: what was found under `name`, with the code that says so; or the problem itself. */
export function outcomeOf(answer: Answer, done: (body: never) => object): never {
  return (answer.ok ? done(answer.body as never) : answer.problem) as never;
}
