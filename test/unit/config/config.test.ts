import { inspect } from 'node:util';
import { Option } from 'commander';
import { describe, expect, test } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { configTables, describeConfig } from '../../../src/config/describe.ts';
import { ConfigError, loadConfig } from '../../../src/config/load-config.ts';
import { settingNames, settings, settingsFor } from '../../../src/config/settings.ts';

const REDIS = 'redis://:hunter2@cache:6379/1';
const POSTGRES = 'postgres://shop:hunter2@db/shop?sslpassword=hunter3';
const JWT_SECRET = 'a-secret-of-more-than-32-characters';

function faultsOf(env: NodeJS.ProcessEnv, flags = {}): string[] {
  try {
    loadConfig(env, flags);
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ field, problem }) => `${field} ${problem}`);
    throw error;
  }
  return [];
}

describe('defaults', () => {
  test('with nothing set', () => {
    expect(loadConfig({}, {})).toEqual({
      redisUrl: undefined,
      databaseUrl: undefined,
      keyPrefix: 'stockade:',
      dataDir: '.stockade',
      pgPoolMax: 5,
      host: '127.0.0.1',
      port: 8080,
      workers: 1,
      httpServer: 'auto',
      corsOrigins: undefined,
      buyerAuth: 'header',
      trustBuyerHeader: false,
      jwtSecret: undefined,
      jwtJwksUrl: undefined,
      jwtAudience: undefined,
      jwtIssuer: undefined,
      publicPayment: false,
      publicOrderNotes: false,
      rateLimitBuyer: undefined,
      rateLimitAddress: undefined,
      rateLimitConnections: undefined,
      rateLimitKeys: 1_048_576,
      trustedProxies: undefined,
      forwardedHeader: 'x-forwarded-for',
      purchaseTokenTtlSeconds: 300,
      purchaseTokenSecret: undefined,
      purchaseTokenOtherSecret: undefined,
      challenge: undefined,
      challengeBits: 18,
      opsHost: '127.0.0.1',
      opsPort: 9090,
      opsToken: undefined,
      opsUrl: undefined,
      probeHost: '127.0.0.1',
      probePort: undefined,
      requestDeadlineMs: 2_000,
      takeTimeoutMs: 500,
      laneCapacity: 4_096,
      maxConnections: 16_000,
      logBacklogMax: 1_000_000,
      strategy: 'script',
      lockWork: undefined,
      sync: true,
      syncBatchRows: 4_000,
      syncYieldMs: 15_000,
      rebalanceEveryMs: 1_000,
      archiveAfterDays: 30,
      eventsStreamMax: 100_000,
      eventsYieldMs: 15_000,
      webhookUrl: undefined,
      webhookSecret: undefined,
      webhookTimeoutMs: 10_000,
      webhookMaxAttempts: 12,
      logLevel: 'info',
      stopDelayMs: 0,
      shutdownGraceMs: 10_000,
      otelExporterOtlpEndpoint: undefined,
      otelTracesExporter: 'none',
      otelExporterOtlpProtocol: 'http/json',
      otelServiceName: 'stockade',
      otelTracesSampler: 'parentbased_traceidratio',
      otelTracesSamplerArg: 0.01,
    } satisfies Config);
  });

  test('as many workers as cores with Redis, at most four', () => {
    const { workers } = loadConfig({ REDIS_URL: REDIS }, {});
    expect(workers).toBeGreaterThanOrEqual(1);
    expect(workers).toBeLessThanOrEqual(4);
  });

  test("a command's own defaults yield to the environment", () => {
    expect(loadConfig({}, {}, { port: 0, logLevel: 'warn' })).toMatchObject({ port: 0, logLevel: 'warn' });
    expect(loadConfig({ PORT: '81' }, {}, { port: 0 }).port).toBe(81);
  });
});

describe('precedence', () => {
  test('flags over environment over defaults', () => {
    const env = { PORT: '1001', OPS_PORT: '1002' };
    expect(loadConfig(env, { port: '2001' })).toMatchObject({
      port: 2001,
      opsPort: 1002,
      syncBatchRows: 4_000,
      syncYieldMs: 15_000,
    });
  });

  test('a flag hides a fault of the environment', () => {
    expect(faultsOf({ PORT: 'abc' }, { port: '80' })).toEqual([]);
  });

  test('an empty string in the environment is not set', () => {
    const empty = Object.fromEntries(settingNames.map((name) => [settings[name].env, '']));
    expect(loadConfig(empty, {})).toEqual(loadConfig({}, {}));
  });

  test('an empty flag is a fault', () => {
    expect(faultsOf({}, { redisUrl: '' })).toHaveLength(1);
  });
});

describe('faults', () => {
  test('five at once', () => {
    const env = {
      PORT: 'abc',
      WORKERS: '0',
      LOG_LEVEL: 'loud',
      REDIS_URL: 'http://cache',
      JWT_SECRET: 'short',
    };
    expect(faultsOf(env)).toEqual([
      'REDIS_URL is http://cache/, but must be a URL that begins with redis:// or rediss://',
      'PORT is "abc", but must be a whole number from 0 to 65535',
      'WORKERS is "0", but must be a whole number from 1 to 64',
      'JWT_SECRET is 5 characters long, but must have at least 32 characters',
      'LOG_LEVEL is "loud", but must be one of fatal, error, warn, info, debug, trace, silent',
    ]);
  });

  test('name the flag that has the fault', () => {
    expect(faultsOf({}, { opsPort: '70000' })).toEqual([
      '--ops-port is "70000", but must be a whole number from 0 to 65535',
    ]);
  });

  test.each([
    ['PORT', '8080.5'],
    ['PORT', '-1'],
    ['PORT', '0x50'],
    ['PORT', ' '],
    ['REQUEST_DEADLINE_MS', '99'],
    ['REQUEST_DEADLINE_MS', '30001'],
    ['TRUST_BUYER_HEADER', 'yes'],
    ['CHALLENGE', './no-such-file.mjs'],
    ['CORS_ORIGINS', 'shop.example'],
    ['CORS_ORIGINS', 'https://shop.example/'],
    ['CORS_ORIGINS', 'https://shop.example,*'],
    ['CHALLENGE', 'test'],
    ['LOCK_WORK', 'pow'],
    ['SYNC', '1'],
    ['OTEL_TRACES_EXPORTER', 'console'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5'],
    ['OTEL_TRACES_SAMPLER_ARG', '1e-3'],
    ['OTEL_TRACES_SAMPLER_ARG', '.'],
    ['HOST', 'http://here'],
    ['KEY_PREFIX', 'a{b}'],
    ['OPS_TOKEN', '15-characters-x'],
    // A line break of a file, which no HTTP header carries.
    ['OPS_TOKEN', 'a-token-of-24-characters\n'],
    ['OPS_TOKEN', ' a-token-of-24-characters'],
    ['OPS_TOKEN', 'a-token-of-\n24-characters'],
    ['OPS_TOKEN', 'a-token-of-25-charactersé'],
    ['OPS_TOKEN', ' '.repeat(16)],
    ['JWT_SECRET', ' '.repeat(32)],
    ['DATABASE_URL', 'mysql://db'],
  ])('%s=%j', (name, value) => {
    const faults = faultsOf({ [name]: value });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(new RegExp(`^${name} `));
  });

  test('never show a secret', () => {
    const env = {
      JWT_SECRET: 'hunter2',
      OPS_TOKEN: 'hunter2',
      REDIS_URL: 'http://:hunter2@cache',
      DATABASE_URL: 'shop:hunter2@db:5432',
      JWT_JWKS_URL: 'ftp://u:hunter2#x@keys',
      WEBHOOK_SECRET: 'hunter2',
    };
    expect(faultsOf(env)).toHaveLength(6);
    expect(faultsOf(env).join()).not.toContain('hunter2');
  });
});

describe('URLs', () => {
  const SIGNED = { WEBHOOK_SECRET: '16-characters-xy' };
  const KEYS = { BUYER_AUTH: 'jwt' };
  const shown = (env: NodeJS.ProcessEnv) => {
    const config = loadConfig(env, {});
    return `${JSON.stringify(describeConfig(config))} ${inspect(config)}`;
  };

  test.each<[NodeJS.ProcessEnv, string]>([
    [
      { ...SIGNED, WEBHOOK_URL: 'https://shop.example/in?token=hunter2&x=hunter3#hunter4' },
      'https://shop.example/(hidden)',
    ],
    [
      { ...SIGNED, WEBHOOK_URL: 'https://hooks.example/services/T0/B0/hunter2' },
      'https://hooks.example/(hidden)',
    ],
    [{ ...SIGNED, WEBHOOK_URL: 'https://hooks.example' }, '"https://hooks.example"'],
    [{ ...KEYS, JWT_JWKS_URL: 'https://keys.example/set?key=hunter2' }, 'https://keys.example/set?key=***'],
    [{ OPS_URL: 'http://hunter2:hunter3@ops:9090/x?token=hunter4' }, 'http://***:***@ops:9090/x?token=***'],
    [
      { DATABASE_URL: 'postgres://shop:hunter2@db/shop?options=hunter3' },
      'postgres://shop:***@db/shop?options=***',
    ],
    [{ DATABASE_URL: 'postgres://db/shop?sslmode=verify-full' }, 'postgres://db/shop?sslmode=verify-full'],
  ])('%o are shown without secrets', (env, expected) => {
    expect(shown(env)).toContain(expected);
    expect(shown(env)).not.toContain('hunter');
  });

  test('other than webhooks are not shown with their paths either', () => {
    const WEBHOOK_URL = 'htps://hooks.example/services/hunter2';
    expect(faultsOf({ WEBHOOK_URL })).toEqual([
      'WEBHOOK_URL is htps://hooks.example/(hidden), but must be a URL that begins with https:// or http://',
    ]);
  });

  test.each(['WEBHOOK_URL', 'JWT_JWKS_URL'])('%s holds no user, whom nobody would send', (name) => {
    const faults = faultsOf({ ...SIGNED, [name]: 'https://hunter2:hunter3@shop.example/hook' });
    expect(faults[0]).toMatch(/, but must hold no user and no password: neither is sent$/);
    expect(faults.join()).not.toContain('hunter');
  });

  test.each<[string, string, string]>([
    ['redisUrl', 'REDIS_URL', 'redis://:hunter2@cache'],
    ['redisUrl', 'REDIS_URL', 'redis://shop:hunter2@a:6379,b:6379'],
    ['databaseUrl', 'DATABASE_URL', 'postgres://shop:hunter2@db/shop'],
    ['databaseUrl', 'DATABASE_URL', 'postgres://db/shop?password=hunter2'],
    ['webhookUrl', 'WEBHOOK_URL', 'https://shop.example/hook?token=hunter2'],
    ['jwtJwksUrl', 'JWT_JWKS_URL', 'https://keys.example/set?key=hunter2'],
    ['opsUrl', 'OPS_URL', 'http://ann:hunter2@ops:9090'],
  ])('%s with a secret is refused on the command line: %s is for it', (name, env, url) => {
    const given = { ...(name === 'jwtJwksUrl' ? KEYS : SIGNED) };
    const [fault, ...others] = faultsOf(given, { [name]: url });
    expect(others).toEqual([]);
    expect(fault).toMatch(
      new RegExp(`^--[a-z-]+ holds a user, password or key, .*: set ${env} in the environment`),
    );
    expect(fault).not.toContain('hunter');
    expect(faultsOf({ ...given, [env]: url })).toEqual([]);
  });

  test('without one may be flags', () => {
    const flags = {
      ...{
        redisUrl: 'redis://shop@a:6379,b:6379',
        databaseUrl: 'postgres://shop@db/shop?sslmode=verify-full',
      },
      ...{ webhookUrl: 'https://shop.example/hook', opsUrl: 'http://ops:9090/' },
    };
    expect(faultsOf(SIGNED, flags)).toEqual([]);
  });
});

describe('relations', () => {
  test('more than one worker needs Redis', () => {
    expect(faultsOf({ WORKERS: '2' })).toEqual([expect.stringMatching(/^WORKERS is 2, .*REDIS_URL/)]);
    expect(faultsOf({ WORKERS: '2', REDIS_URL: REDIS })).toEqual([]);
  });

  test('a webhook needs a key', () => {
    const WEBHOOK_URL = 'https://shop.example/hook';
    expect(faultsOf({ WEBHOOK_URL })).toEqual([expect.stringMatching(/^WEBHOOK_URL .*WEBHOOK_SECRET/)]);
    expect(faultsOf({ WEBHOOK_URL, WEBHOOK_SECRET: '16-characters-xy' })).toEqual([]);
    const prefixed = (base64: string) => faultsOf({ WEBHOOK_URL, WEBHOOK_SECRET: `whsec_${base64}` });
    expect(prefixed('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')).toEqual([]);
    for (const wrong of [
      'MfKQ9r8GKYqrTwjUPD8I',
      'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS',
      'MfKQ9r8GKYqr_wjUPD8ILPZIo2LaLaSw',
    ])
      expect(prefixed(wrong), wrong).toEqual([expect.stringMatching(/^WEBHOOK_SECRET .*base64/)]);
  });

  test('connections are counted by address only where proxies are named', () => {
    const RATE_LIMIT_CONNECTIONS = '20/10/100';
    expect(faultsOf({ RATE_LIMIT_CONNECTIONS, TRUSTED_PROXIES: '1' })).toEqual([
      expect.stringMatching(/^TRUSTED_PROXIES is 1, .*RATE_LIMIT_CONNECTIONS/),
    ]);
    expect(faultsOf({ RATE_LIMIT_CONNECTIONS, TRUSTED_PROXIES: '10.0.0.0/8' })).toEqual([]);
    expect(faultsOf({ RATE_LIMIT_CONNECTIONS })).toEqual([]);
    expect(faultsOf({ TRUSTED_PROXIES: '1' })).toEqual([]);
  });

  test('behind a gateway, addresses are limited only where it is named', () => {
    const gateway = { HOST: '0.0.0.0', TRUST_BUYER_HEADER: '1' };
    for (const limit of [{ RATE_LIMIT_ADDRESS: '20/1' }, { RATE_LIMIT_CONNECTIONS: '20/10' }]) {
      const [name] = Object.keys(limit);
      expect(faultsOf({ ...gateway, ...limit })).toEqual([
        expect.stringMatching(new RegExp(`^${name} is 20/1.*TRUST_BUYER_HEADER=1.*TRUSTED_PROXIES`)),
      ]);
      expect(faultsOf({ ...gateway, ...limit, TRUSTED_PROXIES: '10.0.0.0/8' })).toEqual([]);
      expect(faultsOf(limit)).toEqual([]);
    }
    // The connections of a gateway on this machine are not counted, its requests are.
    const here = { TRUST_BUYER_HEADER: '1' };
    expect(faultsOf({ ...here, RATE_LIMIT_CONNECTIONS: '20/10' })).toEqual([]);
    expect(faultsOf({ ...here, RATE_LIMIT_ADDRESS: '20/1' })).toHaveLength(1);
    expect(faultsOf({ ...gateway, RATE_LIMIT_BUYER: '20/1' })).toEqual([]);
  });

  test('traces are sent by one protocol only, if there are any', () => {
    const grpc = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
    const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4317' };
    expect(faultsOf(grpc)).toEqual([]);
    expect(faultsOf({ ...grpc, ...collector })).toEqual([
      expect.stringMatching(/^OTEL_EXPORTER_OTLP_PROTOCOL is grpc: .*http\/json.*OTEL_TRACES_EXPORTER=none/),
    ]);
    expect(faultsOf({ ...grpc, ...collector, OTEL_TRACES_EXPORTER: 'none' })).toEqual([]);
  });

  test('traces are on where a collector is named, or where they are asked for', () => {
    const exporter = (env: NodeJS.ProcessEnv) => loadConfig(env, {}).otelTracesExporter;
    const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://collector:4318';
    expect(exporter({})).toBe('none');
    expect(exporter({ OTEL_EXPORTER_OTLP_ENDPOINT })).toBe('otlp');
    expect(exporter({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER: 'none' })).toBe('none');
    expect(exporter({ OTEL_TRACES_EXPORTER: 'otlp' })).toBe('otlp');
  });

  test('locks need Redis', () => {
    expect(faultsOf({ STRATEGY: 'lock' })).toEqual([expect.stringMatching(/^STRATEGY is lock, .*REDIS_URL/)]);
    expect(faultsOf({ STRATEGY: 'lock', REDIS_URL: REDIS })).toEqual([]);
  });

  test('the header is trusted on loopback only, unless told', () => {
    expect(faultsOf({ HOST: '0.0.0.0' })).toEqual([
      expect.stringMatching(/^HOST is 0.0.0.0.*TRUST_BUYER_HEADER=1/),
    ]);
    for (const host of ['localhost', '127.0.0.2', '::1']) expect(faultsOf({ HOST: host })).toEqual([]);
    for (const host of ['10.0.0.1', '::', 'shop.example', '127.evil.example']) {
      expect(faultsOf({ HOST: host })).toHaveLength(1);
    }
    expect(faultsOf({ HOST: '0.0.0.0', TRUST_BUYER_HEADER: '1' })).toEqual([]);
    expect(faultsOf({ HOST: '0.0.0.0', BUYER_AUTH: 'jwt', JWT_SECRET })).toEqual([]);
  });

  test('jwt takes exactly one source of keys', () => {
    expect(() => loadConfig({ JWT_SECRET, CHALLENGE: 'none.mjs' }, {}, {}, ['redisUrl'])).not.toThrow();
    expect(faultsOf({ JWT_SECRET })).toEqual([expect.stringMatching(/^BUYER_AUTH is header, but .*jwt/)]);
    const jwt = { BUYER_AUTH: 'jwt' };
    const JWT_JWKS_URL = 'https://login.example/keys';
    expect(faultsOf(jwt)).toEqual([expect.stringMatching(/^BUYER_AUTH .*JWT_SECRET or JWT_JWKS_URL/)]);
    expect(faultsOf({ ...jwt, JWT_SECRET, JWT_JWKS_URL })).toEqual([
      expect.stringMatching(/^BUYER_AUTH .*one of them/),
    ]);
    expect(faultsOf({ ...jwt, JWT_SECRET })).toEqual([]);
    expect(faultsOf({ ...jwt, JWT_JWKS_URL })).toEqual([]);
  });

  test('a take ends before the request does', () => {
    expect(faultsOf({ TAKE_TIMEOUT_MS: '2000' })).toEqual([
      'TAKE_TIMEOUT_MS is 2000, but must be below REQUEST_DEADLINE_MS, which is 2000',
    ]);
    expect(faultsOf({ TAKE_TIMEOUT_MS: '2000', REQUEST_DEADLINE_MS: '2001' })).toEqual([]);
  });

  test('the ports differ', () => {
    expect(faultsOf({ PORT: '9090' })).toEqual([expect.stringMatching(/^OPS_PORT is 9090/)]);
    expect(faultsOf({ PROBE_PORT: '8080' })).toEqual([
      'PROBE_PORT is 8080, and so is PORT: set one of them to another port',
    ]);
    expect(faultsOf({ PROBE_PORT: '9090' })).toEqual([
      'PROBE_PORT is 9090, and so is OPS_PORT: set one of them to another port',
    ]);
    expect(faultsOf({ PORT: '0', OPS_PORT: '0', PROBE_PORT: '0' })).toEqual([]);
  });

  test('are not checked if one of the settings is invalid', () => {
    expect(faultsOf({ WORKERS: '2', REDIS_URL: 'cache' })).toHaveLength(1);
    expect(faultsOf({ BUYER_AUTH: 'jwt', JWT_SECRET: 'short' })).toHaveLength(1);
  });
});

describe('secrets', () => {
  const config = loadConfig(
    {
      REDIS_URL: REDIS,
      DATABASE_URL: POSTGRES,
      OPS_TOKEN: 'hunter2-hunter2-',
      BUYER_AUTH: 'jwt',
      JWT_SECRET: `hunter2-${JWT_SECRET}`,
    },
    {},
  );

  test('are hidden in every way of printing', () => {
    const printed = [
      inspect(config, { depth: 9 }),
      JSON.stringify(config),
      `${config.redisUrl}${config.opsToken}`,
    ];
    printed.push(JSON.stringify(describeConfig(config)));
    for (const text of printed) expect(text).not.toMatch(/hunter/);
  });

  test('are given when asked for', () => {
    expect(config.redisUrl?.reveal()).toBe(REDIS);
    expect(config.opsToken?.reveal()).toBe('hunter2-hunter2-');
  });

  test('URLs are described without password', () => {
    expect(describeConfig(config)).toMatchObject({
      REDIS_URL: 'redis://:***@cache:6379/1',
      DATABASE_URL: 'postgres://shop:***@db/shop?sslpassword=***',
      OPS_TOKEN: '(hidden)',
      PORT: 8080,
    });
  });
});

test('each kind of process has the settings that have an effect in it', () => {
  const [ofNode, ofSync] = [settingsFor('node'), settingsFor('sync', 'Operators', 'Sync', 'Process')];
  const ofCommand = settingsFor('command', 'Stores', 'Operators', 'Process');
  expect(settingNames.filter((name) => !ofNode.includes(name))).toEqual(['opsUrl']);
  for (const name of ['sync', 'syncYieldMs', 'opsUrl', 'stopDelayMs'] as const)
    expect(ofSync).not.toContain(name);
  expect(ofSync).toEqual(expect.arrayContaining(['probePort', 'syncBatchRows', 'shutdownGraceMs']));
  for (const name of ['probeHost', 'probePort', 'stopDelayMs'] as const)
    expect(ofCommand).not.toContain(name);
  expect(ofCommand).toEqual(expect.arrayContaining(['redisUrl', 'opsUrl', 'logLevel']));
  expect(ofCommand).not.toContain('port');
});

test('each flag has the name of its setting, by which the command line passes its value on', () => {
  const names = settingNames.flatMap((name) => {
    const { flag } = settings[name];
    return flag === undefined ? [] : [[name, new Option(flag).attributeName()]];
  });
  expect(names.filter(([name, ofFlag]) => name !== ofFlag)).toEqual([]);
});

test('the tables for docs/configuration.md have a row for each setting', () => {
  const rows = configTables()
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  expect(rows.map((row) => /`(\w+)`/.exec(row)![1])).toEqual(settingNames.map((name) => settings[name].env));
  for (const row of rows) expect(row.match(/(?<!\\)\|/g)).toHaveLength(5);
});
