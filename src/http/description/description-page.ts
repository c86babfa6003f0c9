/** The description of a port as a page: routes by tag, with what they take and what they answer. It needs no script. */
import type { KeptReply } from '../server/conditional.ts';
import { isProblemCode, kindOf, typeOf } from '../server/replies/problem-kinds.ts';
import {
  type Description,
  type Example,
  type Media,
  type Operation,
  type Parameter,
  type Response,
  resolved,
} from './description.ts';
import { type Html, html, page, prose } from './html.ts';
import { anchorOf, rowHtml, schemaHtml, tableHtml, typeHtml } from './schema-html.ts';

const PROBLEM = 'application/problem+json';

interface Route {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function descriptionPage(description: Description): KeptReply {
  const { info, tags } = description;
  const routes = routesOf(description);
  const content = html`<h1>${info.title}</h1>
<p class="version">Stockade ${info.version} · <a href="/openapi.json">this description as OpenAPI 3.1</a> · <a href="/problems">codes of problems</a></p>
<p>${prose(info.description)}</p>
<nav class="routes" aria-label="Routes">${tags.map(({ name }) => contentsHtml(name, withTag(routes, name)))}</nav>
${tags.map(
  ({ name, description: about }) => html`<section><h2>${name}</h2><p>${prose(about)}.</p>
${withTag(routes, name).map((route) => routeHtml(description, route))}</section>\n`,
)}<section><h2>Values</h2>
${valuesHtml(description)}</section>`;
  return page(`${info.title} · Stockade`, content);
}

function routesOf({ paths, webhooks = {} }: Description): Route[] {
  const flat = (of: typeof paths, pathOf: (name: string) => string) =>
    Object.entries(of).flatMap(([name, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path: pathOf(name),
        operation,
      })),
    );
  return [...flat(paths, (path) => path), ...flat(webhooks, () => 'WEBHOOK_URL')];
}

const withTag = (routes: readonly Route[], tag: string) =>
  routes.filter(({ operation }) => operation.tags.includes(tag));

function contentsHtml(tag: string, routes: readonly Route[]): Html {
  const items = routes.map(
    ({ operation: { operationId, summary }, ...route }) =>
      html`<li>${methodHtml(route)} <a href="#${operationId}"><code>${route.path}</code></a> ${summary}</li>\n`,
  );
  return html`<h2>${tag}</h2><ul>${items}</ul>`;
}

function methodHtml({ method }: Pick<Route, 'method'>): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`;
}

function routeHtml(description: Description, { operation, ...route }: Route): Html {
  const { operationId, summary, description: about, parameters = [], requestBody, responses } = operation;
  const isWebhook = route.path === 'WEBHOOK_URL';
  return html`<article id="${operationId}">
<h3>${methodHtml(route)} <code>${route.path}</code></h3>
<p><strong>${summary}.</strong> ${about && prose(about)} ${isWebhook ? undefined : whoHtml(description, operation)}</p>
${parametersHtml(description, parameters)}${requestBody && bodyHtml(description, requestBody)}
<h4>${isWebhook ? 'Your answers' : 'Answers'}</h4>
${Object.entries(responses).map(([status, response]) => responseHtml(description, status, response))}
</article>\n`;
}

function whoHtml({ components }: Description, { security }: Operation): Html {
  if (security?.length === 0) return html`Everybody may ask.`;
  const schemes = Object.values(components.securitySchemes).map(({ description }) => description);
  return html`Needs credentials (${schemes.join('; ')}).`;
}

function parametersHtml(description: Description, parameters: readonly Parameter[]): Html | undefined {
  if (parameters.length === 0) return undefined;
  const rows = parameters.map((unresolved) => {
    const {
      name,
      in: place,
      required = false,
      description: about,
      schema,
    } = resolved(description, unresolved);
    const where = place === 'path' ? 'in the path' : place;
    return rowHtml(html`<code>${name}</code> <span class="bounds">${where}</span>`, schema, required, about);
  });
  return html`<h4>Parameters</h4>${tableHtml('Name', rows)}`;
}

function bodyHtml(
  description: Description,
  { required, content }: NonNullable<Operation['requestBody']>,
): Html {
  return html`<h4>Body${required ? '' : ', which may be left out'}</h4>
${Object.values(content).map((media) => html`${membersOrName(media)}${examplesHtml(description, media)}`)}`;
}

function membersOrName({ schema }: Media): Html {
  return schema.$ref === undefined ? schemaHtml(schema) : html`<p>${typeHtml(schema)}</p>`;
}

function responseHtml(description: Description, status: string, response: Response): Html {
  const { description: about, headers = {}, content = {} } = response;
  const named = Object.keys(headers);
  const heads = named.length === 0 ? undefined : html` <span class="bounds">with ${named.join(', ')}</span>`;
  const media = Object.entries(content).map(([type, of]) =>
    type === PROBLEM ? problemsHtml(of) : mediaHtml(description, type, of),
  );
  return html`<div class="answer"><p><span class="status s${status[0]}">${status}</span> ${prose(about)}${heads}</p>${media}</div>\n`;
}

/** Codes are links to their pages. */
function problemsHtml({ examples = {} }: Media): Html {
  const links = Object.keys(examples)
    .filter(isProblemCode)
    .map((code) => html`<li><a href="${typeOf(code)}"><code>${code}</code></a> ${kindOf(code).title}</li>`);
  return html`<ul class="codes">${links}</ul>`;
}

function mediaHtml(description: Description, type: string, media: Media): Html {
  const name = type === 'application/json' ? undefined : html`<p><code>${type}</code></p>`;
  return html`${name}${type === 'application/json' ? membersOrName(media) : undefined}${examplesHtml(description, media)}`;
}

function examplesHtml(description: Description, { example, examples = {} }: Media): Html {
  const all: readonly Example[] = example === undefined ? Object.values(examples) : [{ value: example }];
  const shown = all.map((unresolved) => {
    const { summary, value } = resolved(description, unresolved);
    const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
    return html`<details><summary>Example${summary && html`: ${summary}`}</summary><pre tabindex="0">${text}</pre></details>`;
  });
  return html`${shown}`;
}

function valuesHtml({ components: { schemas } }: Description): Html {
  return html`${Object.entries(schemas).map(
    ([name, schema]) =>
      html`<article id="${anchorOf(name)}"><h3>${name}</h3>${schemaHtml(schema)}</article>\n`,
  )}`;
}
