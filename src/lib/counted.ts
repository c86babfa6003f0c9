/** "1 unit", "2 units". @param noun in the singular, with a plural that ends in s */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** "1 unit is", "2 units are". */
export function countedAre(count: number, noun: string): string {
  return `${counted(count, noun)} ${count === 1 ? 'is' : 'are'}`;
}
