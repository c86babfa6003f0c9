// Makes the passwords and keys of compose.yaml, once: node make-secrets.mjs <folder>
//
// The folder has one folder for each service that reads secrets: a volume that no other service has. So the files in it may
// be readable for the users of all images. If all files are there, nothing is changed.
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const folder = process.argv[2];
if (folder === undefined) {
  console.error('usage: node make-secrets.mjs <folder>');
  process.exit(2);
}

// Of letters and digits, so that they need no escape in a URL.
const secret = () => randomBytes(24).toString('hex');
const sha256 = (text) => createHash('sha256').update(text).digest('hex');

const [redis, events, admin, owner, app, buyers] = Array.from({ length: 6 }, secret);
const users = readFileSync(new URL('../redis-users.acl', import.meta.url), 'utf8')
  .replace('SHA256-OF-THE-PASSWORD-OF-STOCKADE-EVENTS', sha256(events))
  .replace('SHA256-OF-THE-PASSWORD-OF-STOCKADE', sha256(redis));
const files = {
  'redis/redis-users.acl': users,
  // For consumers of order events, which connect as the user stockade-events.
  'redis/events-password': events,
  'postgres/admin-password': admin,
  'postgres/owner-password': owner,
  'postgres/app-password': app,
  'owner/owner.env': `DATABASE_URL=postgres://stockade_owner:${owner}@postgres:5432/shop\n`,
  // The last one: it says that all others are there.
  'node/node.env': [
    `REDIS_URL=redis://stockade:${redis}@redis:6379`,
    `DATABASE_URL=postgres://stockade_app:${app}@postgres:5432/shop`,
    `JWT_SECRET=${buyers}\n`,
  ].join('\n'),
};

const names = Object.keys(files);
if (existsSync(join(folder, names.at(-1)))) console.log('the secrets are there already');
else {
  for (const name of names) {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.new`, files[name], { mode: 0o444 });
    renameSync(`${file}.new`, file);
  }
  console.log(`made ${names.join(', ')}`);
}
