/** What a process was told, checked (load-config.ts). */
import type { ForwardedHeader } from '../admission/addresses.ts';
import type { Secret, SecretUrl } from './secret.ts';

/** Each of these is described in settings.ts. */
export interface Config {
  readonly redisUrl: SecretUrl | undefined;
  readonly databaseUrl: SecretUrl | undefined;
  readonly keyPrefix: string;
  readonly dataDir: string;
  readonly pgPoolMax: number;
  readonly host: string;
  readonly port: number;
  readonly workers: number;
  readonly buyerAuth: 'header' | 'jwt';
  readonly trustBuyerHeader: boolean;
  readonly jwtSecret: Secret | undefined;
  readonly jwtJwksUrl: SecretUrl | undefined;
  readonly jwtAudience: string | undefined;
  readonly jwtIssuer: string | undefined;
  readonly publicPayment: boolean;
  readonly rateLimitBuyer: string | undefined;
  readonly rateLimitAddress: string | undefined;
  readonly rateLimitConnections: string | undefined;
  readonly rateLimitKeys: number;
  readonly trustedProxies: string | undefined;
  readonly forwardedHeader: ForwardedHeader;
  readonly purchaseTokenTtlSeconds: number;
  readonly purchaseTokenSecret: Secret | undefined;
  readonly purchaseTokenOtherSecret: Secret | undefined;
  readonly challenge: string | undefined;
  readonly challengeBits: number;
  readonly opsHost: string;
  readonly opsPort: number;
  readonly opsToken: Secret | undefined;
  readonly opsUrl: SecretUrl | undefined;
  readonly requestDeadlineMs: number;
  readonly takeTimeoutMs: number;
  readonly laneCapacity: number;
  readonly maxConnections: number;
  readonly logBacklogMax: number;
  readonly strategy: 'script' | 'lock';
  readonly lockWork: string | undefined;
  readonly sync: boolean;
  readonly syncBatchRows: number;
  readonly syncYieldMs: number;
  readonly rebalanceEveryMs: number;
  readonly eventsStreamMax: number;
  readonly eventsYieldMs: number;
  readonly webhookUrl: SecretUrl | undefined;
  readonly webhookSecret: Secret | undefined;
  readonly webhookTimeoutMs: number;
  readonly webhookMaxAttempts: number;
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';
  readonly shutdownGraceMs: number;
}
