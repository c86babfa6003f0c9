// Prints a token for a buyer of compose.yaml's shop, as the shop's login would sign it: node buyer-token.mjs <buyer> [node.env]
import { SignJWT } from 'jose';

const [buyer, file = '/run/stockade/node.env'] = process.argv.slice(2);
if (buyer === undefined) {
  console.error('usage: node buyer-token.mjs <buyer> [node.env]');
  process.exit(2);
}
process.loadEnvFile(file);
const key = new TextEncoder().encode(process.env.JWT_SECRET);
console.log(
  await new SignJWT({ sub: buyer }).setProtectedHeader({ alg: 'HS256' }).setExpirationTime('1h').sign(key),
);
