/** A stock in so many parts, as even as it gets: the first `stock mod parts` of them have one more. */
export function shares(stock: number, parts: number): number[] {
  const base = Math.floor(stock / parts);
  return Array.from({ length: parts }, (_, part) => base + (part < stock % parts ? 1 : 0));
}
