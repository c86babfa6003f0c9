/** A client of a node's public port: buys once, however often it has to ask. */
import { BuyerClient } from '@stockade-engine/stockade/client';

const buyer = new BuyerClient({
  url: process.env.SHOP_URL ?? 'http://127.0.0.1:8080',
  headers: { 'X-Buyer-Id': process.argv[2] ?? 'ann' },
});
const outcome = await buyer.purchase({ saleId: 'front-row' });
switch (outcome.code) {
  case 'committed':
  case 'accepted':
    console.log('bought', outcome.orderId);
    break;
  case 'limit_reached':
    console.log('at most', outcome.limit);
    break;
  case 'unknown':
    console.log('ask again with the key', outcome.key);
    break;
  default:
    console.log(outcome.title);
}
