/**
 * DATABASE_URL. If it asks for TLS, the server's certificate and name are always checked. The meaning of `sslmode=require`
 * depends on the version of the driver, so this file replaces it by the explicit mode. Only `no-verify` checks nothing.
 */
import { TLS_FILES } from '../../redis/redis-address.ts';
import { url } from './schemas.ts';
import { SecretUrl } from './secret.ts';
import { faultOfFiles } from './url-files.ts';

/** The modes of other Postgres clients, and the mode that each means here. */
const MODES: ReadonlyMap<string, string> = new Map([
  ['disable', 'disable'],
  ['no-verify', 'no-verify'],
  ['prefer', 'verify-full'],
  ['require', 'verify-full'],
  ['verify-ca', 'verify-full'],
  ['verify-full', 'verify-full'],
]);
/** The values of the driver's own parameter `ssl`, as an sslmode. */
const OF_SSL: Readonly<Record<string, string>> = {
  true: 'verify-full',
  1: 'verify-full',
  false: 'disable',
  0: 'disable',
};

export const postgresUrl = url('postgres:', 'postgresql:')
  .refine((secret) => problemOf(secret.reveal()) === undefined, {
    error: ({ input }) => problemOf((input as SecretUrl).reveal()) ?? '',
    abort: true,
  })
  .transform((secret) => strict(secret.reveal()));

function problemOf(text: string): string | undefined {
  const { searchParams } = new URL(text);
  const mode = modeOf(searchParams);
  if (mode !== undefined && !MODES.has(mode))
    return 'must have an sslmode of verify-full, no-verify or disable';
  if (searchParams.has('uselibpqcompat'))
    return 'must not have uselibpqcompat: set sslmode to verify-full, or to no-verify to skip the check of the server';
  return faultOfFiles(text);
}

function strict(text: string): SecretUrl {
  const parsed = new URL(text);
  const mode = modeOf(parsed.searchParams);
  if (mode === undefined) return new SecretUrl(text);
  parsed.searchParams.delete('ssl');
  parsed.searchParams.set('sslmode', MODES.get(mode)!);
  return new SecretUrl(parsed.href);
}

function modeOf(parameters: URLSearchParams): string | undefined {
  const ssl = parameters.get('ssl');
  const byFiles = TLS_FILES.some((name) => parameters.has(name)) ? 'verify-full' : undefined;
  return parameters.get('sslmode') ?? (ssl === null ? byFiles : (OF_SSL[ssl] ?? ssl));
}
