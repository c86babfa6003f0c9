import { headOf, type Reply } from '../server/replies/reply.ts';

const RETRY_LATER = { 'content-type': 'application/json', 'retry-after': '1' };

/** @param reason only for operators */
export function notReadyReply(reason?: string): Reply {
  return {
    status: 503,
    head: headOf(503, RETRY_LATER),
    body: JSON.stringify({ status: 'not ready', reason }),
  };
}
