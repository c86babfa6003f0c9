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

/** The number of packages that a node runs with, without Stockade itself. */
export const PACKAGES_OF_A_NODE: number;

/** The faults of the lock file, one line each. */
export function faultsOf(manifest: Manifest, lock: LockFile): string[];
