/** Who changes sales in tests. */
export const BY = { actor: 'tester', reason: 'a test' };
