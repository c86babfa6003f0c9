/** The operator of the tests. */
export const BY = { actor: 'tester', reason: 'a test' };
