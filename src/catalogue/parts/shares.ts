/** What each of so many parts gets of the stock: the first ones get what does not divide. */
export function shares(stock: number, parts: number): number[] {
  return Array.from({ length: parts }, (_, i) => Math.floor(stock / parts) + (i < stock % parts ? 1 : 0));
}
