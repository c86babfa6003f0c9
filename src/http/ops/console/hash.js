// What the console shows is kept in its address, so that "back" and a reload work: #/sale/tickets/orders?status=paid

/** What the address asks for. @returns {{ view: string, saleId?: string, tab?: string, query: Record<string, string> }} */
export function addressed() {
  const [path, query = ''] = location.hash.slice(1).split('?');
  const [, view = '', saleId, tab] = path.split('/').map(decode);
  const values = Object.fromEntries(new URLSearchParams(query));
  if (view === 'sale' && saleId) return { view, saleId, tab: tab || 'overview', query: values };
  const known = ['sales', 'refunds', 'events', 'nodes'];
  return { view: known.includes(view) ? view : 'sales', query: values };
}

export const saleHash = (saleId, tab = 'overview', query = {}) =>
  `#/sale/${encodeURIComponent(saleId)}/${tab}${queryOf(query)}`;

export const viewHash = (view, query = {}) => `#/${view}${queryOf(query)}`;

/** Without the values that are empty. */
export function queryOf(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

/** An address that somebody has written by hand may not be valid. */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
