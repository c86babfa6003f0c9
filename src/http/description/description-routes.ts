/**
 * Each port explains itself: its description for programs, the same as a page, and a page for each code of a problem. All of it is
 * answered from memory, to everybody: it holds nothing of a shop.
 */
import { KeptReply } from '../server/conditional.ts';
import type { Handler } from '../server/exchange.ts';
import type { Method } from '../server/http-server.ts';
import { problem } from '../server/replies/problem.ts';
import { isProblemCode, type ProblemCode } from '../server/replies/problem-kinds.ts';
import type { Router } from '../server/router.ts';
import { type Description, type PortName, readDescription } from './description.ts';
import { descriptionPage } from './description-page.ts';
import { problemPage, problemsPage } from './problem-pages.ts';

const NO_PAGE = problem('not_found');
const JSON_HEADERS = { 'x-content-type-options': 'nosniff' };

/** Must be called after all other routes were added: it describes those. */
export function addDescriptionRoutes(router: Router, port: PortName): void {
  const explained = new Explained(router, port);
  const kept =
    (reply: (name: string) => KeptReply | undefined): Handler =>
    (exchange, request) =>
      exchange.reply(reply(request.getParameter(0) ?? '')?.to(request.getHeader('if-none-match')) ?? NO_PAGE);
  router
    .route(
      'get',
      '/openapi.json',
      kept(() => explained.json),
    )
    .route(
      'get',
      '/docs',
      kept(() => explained.page),
    )
    .route(
      'get',
      '/problems',
      kept(() => explained.problems),
    )
    .route(
      'get',
      '/problems/:code',
      kept((code) => explained.problem(code)),
    );
}

/** Makes each answer when it is asked for the first time: most processes are never asked. */
class Explained {
  readonly #router: Router;
  readonly #port: PortName;
  #description: Description | undefined;
  #json: KeptReply | undefined;
  #page: KeptReply | undefined;
  #problems: KeptReply | undefined;
  readonly #pages = new Map<ProblemCode, KeptReply>();

  constructor(router: Router, port: PortName) {
    this.#router = router;
    this.#port = port;
  }

  get json(): KeptReply {
    this.#json ??= new KeptReply('application/json', JSON.stringify(this.#described), JSON_HEADERS);
    return this.#json;
  }

  get page(): KeptReply {
    this.#page ??= descriptionPage(this.#described);
    return this.#page;
  }

  get problems(): KeptReply {
    this.#problems ??= problemsPage(Object.keys(this.#described.components.examples).filter(isProblemCode));
    return this.#problems;
  }

  problem(code: string): KeptReply | undefined {
    const example = isProblemCode(code) ? this.#described.components.examples[code] : undefined;
    if (!isProblemCode(code) || !example) return undefined;
    const known = this.#pages.get(code) ?? problemPage(code, example.value);
    this.#pages.set(code, known);
    return known;
  }

  get #described(): Description {
    this.#description ??= readDescription(this.#port, (method, path) =>
      this.#router.routes.get(path.replaceAll(/\{(\w+)\}/g, ':$1'))?.includes(method as Method),
    );
    return this.#description;
  }
}
