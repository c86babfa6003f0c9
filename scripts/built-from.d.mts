export function isBuilt(root: string, sources: readonly string[]): boolean;
export function beginBuild(root: string, sources: readonly string[]): () => void;
