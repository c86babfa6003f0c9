export const GENERATED: readonly { readonly from: string; readonly to: string }[];
export function generate(from: string): string;
