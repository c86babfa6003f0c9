export const GENERATED: readonly { readonly from: string; readonly to: string; readonly unlike?: string }[];
export function generate(from: string, unlike?: string): string;
