/** Connections that break, replies lost after their command was executed, and requests that arrive late. */
import { until } from '../../support/until.ts';
import type { Scene, Schedule } from '../schedule.ts';
import { untilServed } from '../schedule.ts';

const LOST_REPLIES = 25;
const CUTS = 8;
const LIMIT_MS = 60_000;
/** Longer than a take waits for its reply. */
const LATE_MS = 900;

const isScript = (request: Buffer) => request.includes('evalsha') || request.includes('eval\r\n');
const isBatch = (request: Buffer) => request.includes('stockade_apply_batch');

export const NETWORK: readonly Schedule[] = [
  {
    name: 'cut-customers',
    what: `customers' connections cut, ${CUTS} times`,
    times: 1,
    strike: (scene) =>
      cutAgain(scene, () => {
        for (const { door } of scene.world.nodes) door.cutAll();
      }),
  },
  {
    name: 'cut-redis',
    what: `all connections to Redis cut, ${CUTS} times`,
    times: 1,
    strike: (scene) =>
      cutAgain(scene, () => {
        for (const { redis } of scene.world.all) redis.cutAll();
      }),
  },
  {
    name: 'cut-postgres',
    what: `all connections to Postgres cut, ${CUTS} times`,
    times: 1,
    strike: (scene) =>
      cutAgain(scene, () => {
        for (const { postgres } of scene.world.all) postgres.cutAll();
      }),
  },
  {
    name: 'refuse-redis',
    what: 'no way from one serve to Redis',
    times: 1,
    async strike({ world, hold }) {
      const { redis } = world.nodes[0]!;
      redis.refuse(true);
      redis.cutAll();
      await hold();
      redis.refuse(false);
    },
  },
  {
    name: 'lose-take-replies',
    what: `replies of ${LOST_REPLIES} scripts lost, of each serve`,
    times: 1,
    async strike({ world }) {
      const losses = world.nodes.map(({ redis }) => redis.loseReplies(isScript, { times: LOST_REPLIES }));
      await until(() => losses.every(({ count }) => count >= LOST_REPLIES), {
        what: 'the replies are lost',
        timeoutMs: LIMIT_MS,
      });
    },
  },
  {
    name: 'lose-sync-replies',
    what: `replies of ${LOST_REPLIES} of sync's transactions lost`,
    times: 1,
    async strike({ world }) {
      const loss = world.sync.postgres.loseReplies(isBatch, { times: LOST_REPLIES });
      await until(() => loss.count >= LOST_REPLIES, { what: 'the replies are lost', timeoutMs: LIMIT_MS });
    },
  },
  {
    name: 'late-takes',
    what: 'takes held back, asked again, delivered late',
    times: 3,
    async strike(scene) {
      const { redis } = scene.world.nodes[0]!;
      await redis.hold(isScript).held;
      await new Promise((resolve) => setTimeout(resolve, LATE_MS));
      await redis.release();
      await untilServed(scene, 50);
    },
  },
];

async function cutAgain(scene: Scene, cut: () => void): Promise<void> {
  for (let time = 0; time < CUTS; time++) {
    cut();
    await untilServed(scene, 40);
  }
}
