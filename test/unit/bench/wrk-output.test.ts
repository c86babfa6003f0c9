import { describe, expect, it } from 'vitest';
import { parseWrkOutput } from '../../../bench/support/wrk/wrk-output.ts';

const PLAIN = `Running 10s test @ http://127.0.0.1:28080/v1/sales/echo/orders
  1 threads and 512 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.73ms    2.61ms  69.99ms   92.16%
    Req/Sec   142.20k    13.01k  163.65k    85.86%
  Latency Distribution
     50%    1.67ms
     75%    4.21ms
     90%    5.90ms
     99%   11.29ms
  1425549 requests in 10.10s, 127.79MB read
Requests/sec: 141144.36
Transfer/sec:     12.65MB
`;

const WITH_ERRORS = `Running 1s test @ http://127.0.0.1:28080/v1/sales/sold/orders
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.00s     2.61ms   1.99s    92.16%
    Req/Sec     8.04      5.33    20.00     70.00%
  Latency Distribution
     50%  146.00us
     75%  999.00us
     90%    1.50s 
     99%    1.02m 
  41 requests in 1.10s, 4.47KB read
  Socket errors: connect 1, read 22, write 333, timeout 4
  Non-2xx or 3xx responses: 40
Requests/sec:     37.21
Transfer/sec:      4.06KB
`;

describe('parseWrkOutput', () => {
  it('reads requests and latencies', () => {
    expect(parseWrkOutput(PLAIN)).toEqual({
      requests: 1_425_549,
      requestsPerSecond: 141_144.36,
      bytes: 127.79 * 1_024 ** 2,
      p50Ms: 1.67,
      p99Ms: 11.29,
      errorStatuses: 0,
      socketErrors: { connect: 0, read: 0, write: 0, timeout: 0 },
    });
  });

  it('reads errors, and latencies in other units', () => {
    const report = parseWrkOutput(WITH_ERRORS);
    expect(report.socketErrors).toEqual({ connect: 1, read: 22, write: 333, timeout: 4 });
    expect(report.errorStatuses).toBe(40);
    expect(report.p50Ms).toBeCloseTo(0.146, 9);
    expect(report.p99Ms).toBeCloseTo(61_200, 6);
  });

  it('refuses output that has no figures, and shows it', () => {
    expect(() => parseWrkOutput('unable to connect to 127.0.0.1:1 Connection refused')).toThrow(
      /no line like .*requests in .*\nunable to connect/,
    );
  });
});
