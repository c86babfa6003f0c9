/** The measurement does not count: answers were wrong, a check failed, or something that is needed is missing. */
export class BenchFailure extends Error {
  override readonly name = 'BenchFailure';
}
