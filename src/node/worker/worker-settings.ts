import type { Config } from '../../config/config.ts';
import type { JwtOptions } from '../../http/identity/identity.ts';
import type { LeaseEnd } from '../../postgres/lease-end.ts';
import { type TraceSettings, traceSettings } from '../../traces/settings.ts';
import type { AdmissionSettings } from './admission.ts';

/** A worker's settings. They cross a thread boundary, so they are plain values only. */
export interface WorkerSettings {
  readonly host: string;
  readonly port: number;
  /** Other workers listen on the same port. */
  readonly isShared: boolean;
  readonly httpServer: Config['httpServer'];
  readonly corsOrigins: string | undefined;
  /** `undefined` if the `X-Buyer-Id` header names the buyer. */
  readonly jwt: JwtOptions | undefined;
  readonly publicPayment: boolean;
  readonly publicOrderNotes: boolean;
  /** TRUST_BUYER_HEADER: a gateway in front of this port sets that header. */
  readonly isBehindGateway: boolean;
  readonly requestDeadlineMs: number;
  readonly laneCapacity: number;
  /** This worker's share of MAX_CONNECTIONS. */
  readonly maxConnections: number;
  readonly shutdownGraceMs: number;
  /** The worker's leased number. */
  readonly worker: number;
  readonly orderIdKey: Uint8Array;
  readonly leaseEnd: LeaseEnd;
  readonly admission: AdmissionSettings;
  /** `undefined`: no purchase is traced. */
  readonly traces: TraceSettings | undefined;
}

/**
 * The settings of one worker of a node.
 * @param given what the configuration does not have
 */
export function workerSettings(
  config: Config,
  given: Pick<WorkerSettings, 'port' | 'worker' | 'leaseEnd' | 'orderIdKey' | 'admission'>,
): WorkerSettings {
  const jwt = config.buyerAuth === 'jwt';
  return {
    ...given,
    host: config.host,
    isShared: config.workers > 1,
    httpServer: config.httpServer,
    corsOrigins: config.corsOrigins,
    jwt: jwt
      ? {
          secret: config.jwtSecret?.reveal(),
          jwksUrl: config.jwtJwksUrl?.reveal(),
          audience: config.jwtAudience,
          issuer: config.jwtIssuer,
          timeoutMs: config.requestDeadlineMs,
        }
      : undefined,
    publicPayment: config.publicPayment,
    publicOrderNotes: config.publicOrderNotes,
    isBehindGateway: config.trustBuyerHeader,
    requestDeadlineMs: config.requestDeadlineMs,
    laneCapacity: config.laneCapacity,
    maxConnections: Math.ceil(config.maxConnections / config.workers),
    shutdownGraceMs: config.shutdownGraceMs,
    traces: traceSettings(config),
  };
}
