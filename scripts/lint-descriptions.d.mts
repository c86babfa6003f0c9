export function lint(text: string, name: string): Promise<string[]>;
