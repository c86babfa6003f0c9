/** What a program can read off a Markdown page: its links, and the anchors that links to it may name. */

/** The text without fenced code: what stands there is no Markdown. */
function prose(text: string): string {
  return text.replaceAll(/^```.*?^```$/gms, '');
}

/** Targets of links and pictures that are on no other machine, in order. */
export function localLinksIn(text: string): string[] {
  const targets = [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/** As GitHub names the anchors of headings: lower case, no punctuation, dashes for blanks, a number for a second one. */
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
