/** Starts the shop's server: `node main.js`. Pays an order back: `node main.js refund <order>`. */
import { Provider } from './provider.js';
import { createShop } from './server.js';
import { refundOrder, sweep } from './settle.js';

// In a project that has Stockade as a package: '@stockade-engine/stockade/client'.
const { OperatorClient } = await import(new URL('../../dist/client/index.js', import.meta.url).href);

const SWEEP_MS = 60_000;
/** Short enough that a webhook is answered before the provider stops waiting. */
const STOCKADE_MS = 4_000;

const {
  PORT = '3000',
  OPS_URL = 'http://localhost:9090',
  PROVIDER_URL = 'https://api.stripe.com',
} = process.env;
const [command, orderId, ...others] = process.argv.slice(2);
const isRefund = command === 'refund' && orderId !== undefined && others.length === 0;
if (command !== undefined && !isRefund) {
  console.error(
    'Use: node main.js, to start the server; or node main.js refund <order>, to pay an order back.',
  );
  process.exit(1);
}
const missing = ['OPS_TOKEN', 'PROVIDER_KEY', 'WEBHOOK_SECRET'].filter((name) => !process.env[name]);
if (missing.length > 0) {
  console.error(`${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing.`);
  process.exit(1);
}
const { OPS_TOKEN, PROVIDER_KEY, WEBHOOK_SECRET } = process.env;

const shop = {
  ops: new OperatorClient({
    ...{ url: OPS_URL, token: OPS_TOKEN, operator: 'payments' },
    ...{ deadlineMs: STOCKADE_MS, attemptMs: STOCKADE_MS },
  }),
  provider: new Provider({ url: PROVIDER_URL, secretKey: PROVIDER_KEY }),
  webhookSecrets: WEBHOOK_SECRET.split(','),
  // A real shop reads its session here. Anybody can set this cookie.
  buyerOf: (request) => /(?:^|; )buyer=([\w-]{1,128})/.exec(request.headers.cookie ?? '')?.[1],
};

if (isRefund) console.log(await refundOrder(shop, orderId));
else {
  createShop(shop).listen(Number(PORT), '127.0.0.1', () => console.log(`http://localhost:${PORT}`));
  for (;;) {
    const failures = await sweep(shop).catch((error) => [error]);
    for (const failure of failures) console.error(failure);
    await new Promise((resolve) => setTimeout(resolve, SWEEP_MS));
  }
}
