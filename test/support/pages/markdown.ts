/** Reads links of a Markdown page, and the anchors that links may name. */

/** The text without fenced code, which is not Markdown. */
function prose(text: string): string {
  return text.replaceAll(/^```.*?^```$/gms, '');
}

/** Targets of local links and pictures, in order. */
export function localLinksIn(text: string): string[] {
  const targets = [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/**
 * The anchors of headings by GitHub's rules: lower case, no punctuation, dashes for spaces, a number for a repeated
 * one.
 */
export function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>();
  const names = [...prose(text).matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading]) => {
    const name = heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return before === 0 ? name : `${name}-${before}`;
  });
  return new Set(names);
}
