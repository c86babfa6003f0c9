/** Which web pages may read the answers of the public port: by the origin of the page, such as `https://shop.example`. */

/** `*`: pages of every origin. */
export type Origins = '*' | ReadonlySet<string>;

export const ORIGINS_FORM =
  'must be *, or origins separated by commas, such as https://shop.example,http://localhost:3000: scheme, host, and port if it is not the usual one; nothing after it';

export function parseOrigins(text: string): Origins | undefined {
  if (text.trim() === '*') return '*';
  const origins = text.split(',').map((part) => part.trim());
  return origins.every(isOrigin) ? new Set(origins) : undefined;
}

/** As a browser writes it, so that it can be compared byte by byte. */
function isOrigin(text: string): boolean {
  return (
    text.startsWith('http') && !text.includes('*') && URL.canParse(text) && new URL(text).origin === text
  );
}
