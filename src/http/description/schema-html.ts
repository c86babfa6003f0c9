/** A JSON schema as HTML: the members of an object as a table, everything else in a few words. */
import type { Schema } from './description.ts';
import { type Html, html, prose } from './html.ts';

/** What a value may be. A schema with a name is a link to its own section. */
export function typeHtml(schema: Schema): Html {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1)!;
    return html`<a href="#${anchorOf(name)}">${name}</a>`;
  }
  if (schema.oneOf) return joined(schema.oneOf.map(typeHtml), ' or ');
  if (schema.enum) return joined(schema.enum.map(value), ', ');
  if ('const' in schema) return value(schema.const);
  if (schema.items) return html`list of ${typeHtml(schema.items)}`;
  const type = [schema.type ?? 'any'].flat().join(' or ');
  return html`${schema.format === undefined ? type : `${type}, ${schema.format}`}`;
}

/** The type, and the bounds of the value. */
function typeAndBounds(schema: Schema): Html {
  const bounds = boundsOf(schema);
  if (bounds.length === 0) return typeHtml(schema);
  return html`${typeHtml(schema)} <span class="bounds">${joined(bounds, '; ')}</span>`;
}

function boundsOf(schema: Schema): Html[] {
  const { minimum, maximum, minItems, maxItems, maxLength, pattern, default: otherwise } = schema;
  const bounds = [
    rangeText(minimum, maximum, ''),
    rangeText(minItems, maxItems, ' items'),
    rangeText(undefined, maxLength, ' characters'),
  ];
  return [
    ...bounds.filter((text) => text !== undefined).map((text) => html`${text}`),
    ...(pattern === undefined ? [] : [html`<code>${pattern}</code>`]),
    ...(otherwise === undefined ? [] : [html`default ${value(otherwise)}`]),
  ];
}

function rangeText(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  if (least === undefined) return most === undefined ? undefined : `up to ${most}${unit}`;
  return most === undefined ? `${least} or more${unit}` : `${least} to ${most}${unit}`;
}

/** The row of a member or a parameter in a table of names. */
export function rowHtml(name: Html, schema: Schema, isRequired: boolean, about = schema.description): Html {
  const required = isRequired ? html` <strong class="required">required</strong>` : undefined;
  // What has no name, and so no section of its own, is shown here.
  const nested = [schema, schema.items].find((of) => of?.properties);
  const meaning = html`${about && prose(about)}${nested && membersHtml(nested)}`;
  return html`<tr><th scope="row">${name}${required}</th><td>${typeAndBounds(schema)}</td><td>${meaning}</td></tr>\n`;
}

/** All of a schema: the members of each form that it may have. */
export function schemaHtml(schema: Schema): Html {
  const about = schema.description === undefined ? undefined : html`<p>${prose(schema.description)}</p>`;
  if (schema.oneOf?.every(({ properties }) => properties))
    return html`${about}<p>One of these:</p>${schema.oneOf.map(membersHtml)}`;
  return html`${about}${schema.properties ? membersHtml(schema) : html`<p>${typeAndBounds(schema)}</p>`}`;
}

function membersHtml({ properties = {}, required = [] }: Schema): Html {
  const rows = Object.entries(properties).map(([name, member]) =>
    rowHtml(html`<code>${name}</code>`, member, required.includes(name)),
  );
  return tableHtml('Member', rows);
}

export function tableHtml(what: string, rows: readonly Html[]): Html {
  return html`<div class="wide"><table><thead><tr><th>${what}</th><th>Type</th><th>Meaning</th></tr></thead><tbody>
${rows}</tbody></table></div>`;
}

export const anchorOf = (schemaName: string) => `schema-${schemaName}`;

function value(of: unknown): Html {
  return html`<code>${typeof of === 'string' ? of : JSON.stringify(of)}</code>`;
}

function joined(parts: readonly Html[], between: string): Html {
  return html`${parts.flatMap((part, i) => (i === 0 ? [part] : [between, part]))}`;
}
