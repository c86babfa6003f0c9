/**
 * Routes of the operators' console: its page, and the stream of its pictures.
 *
 * The page holds no secret and needs no token; all that it shows does. A browser's EventSource can't send a token, so the page
 * reads the stream with `fetch`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { queryValues } from '../../lib/url-query.ts';
import {
  type ConsoleOperations,
  type ConsolePicture,
  parseConsoleQuery,
} from '../../operations/console/console-operations.ts';
import { problem } from '../server/replies/problem.ts';
import { EVENT_STREAM, headOf, type Reply } from '../server/replies/reply.ts';
import type { Router } from '../server/router.ts';
import type { Guarded } from './guard.ts';

/** The build copies them here (scripts/build.mjs). */
const FOLDER = new URL('./console/', import.meta.url);
const PAGE = 'index.html';
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Nothing from elsewhere, nothing inline, and no page that frames this one. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');
const PAGE_HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  // After an upgrade, the page must not be made of files of two versions.
  'cache-control': 'no-store',
};

const NO_FILE = problem('not_found');

export function addConsoleRoutes(router: Router, console: ConsoleOperations, guarded: Guarded): void {
  const replies = new Map(readdirSync(FOLDER).map((name) => [name, fileReply(name)]));
  router
    .route('get', '/console', (exchange) => exchange.reply(replies.get(PAGE)!))
    .route('get', '/console/:file', (exchange, request) =>
      exchange.reply(replies.get(request.getParameter(0) ?? '') ?? NO_FILE),
    )
    .route(
      'get',
      '/v1/console/events',
      guarded(async ({ query }) => {
        const pictures = console.watch(parseConsoleQuery(queryValues(query)));
        return { status: 200, head: headOf(200, EVENT_STREAM), pieces: eventsOf(pictures) };
      }),
    );
}

function fileReply(name: string): Reply {
  const head = headOf(200, { 'content-type': TYPES[extname(name)]!, ...PAGE_HEADERS });
  return { status: 200, head, body: readFileSync(new URL(name, FOLDER), 'utf8') };
}

async function* eventsOf(pictures: AsyncIterable<ConsolePicture>): AsyncGenerator<string> {
  for await (const picture of pictures) yield `event: picture\ndata: ${JSON.stringify(picture)}\n\n`;
}
