/** Passes the harness's stores to the tests, with a database made from this copy's migrations. */
import type { TestProject } from 'vitest/node';
import { createMigratedDatabase } from '../../support/postgres/least-rights.ts';
import type { StoreUrls } from './stores.ts';

export default async function setup(project: TestProject): Promise<void> {
  const { redisUrl, postgresUrl } = JSON.parse(process.env.MUTANTS_STORES!) as StoreUrls;
  project.provide('redisUrl', redisUrl);
  project.provide('postgresUrl', postgresUrl);
  project.provide('migratedDatabase', await createMigratedDatabase(postgresUrl));
}
