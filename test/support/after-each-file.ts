/**
 * Runs at the start of each test file that needs servers. The hook is registered before those of the file, so it runs after them.
 */
import { afterAll } from 'vitest';
import { dropDatabases } from './fixtures.ts';

afterAll(dropDatabases);
