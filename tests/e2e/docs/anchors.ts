/** Where the links of a page lead, as far as they stay in this project. */
export function linksOf(markdown: string): string[] {
  const prose = withoutBlocks(markdown)
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link).filter((link) => !/^\w+:/.test(link))
}

/** What can stand behind `#` in a link to a page, as GitHub makes it from headings. */
export function anchorsOf(markdown: string): string[] {
  const headings = [...withoutBlocks(markdown).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading)
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  )
}

/** Paths of files in the text that are not links: `src/a/b.ts`, `docs/c.md`. */
export function pathsOf(text: string): string[] {
  return [...text.matchAll(/(?<![\w./:~@{$-])[\w-]+(?:\/[\w.-]+)*\/[\w.-]+\.(?:ts|md|ya?ml|json|tsx)\b/g)].map(
    ([path]) => path,
  )
}

const withoutBlocks = (markdown: string): string => markdown.replaceAll(/^```.*?^```$/gms, '')
