export interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

export interface LockedPackage {
  version?: string;
  integrity?: string;
  resolved?: string;
  license?: string;
  dev?: boolean;
  hasInstallScript?: boolean;
}

export interface LockFile {
  packages: Record<string, LockedPackage>;
}

/** Of the packages that a node runs with, its own not counted. */
export const PACKAGES_OF_A_NODE: number;

/** What is wrong with what is locked, one line each; none if all holds. */
export function faultsOf(manifest: Manifest, lock: LockFile): string[];
