/** The subset of Markdown that the error documentation uses. */
export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'list'; readonly items: readonly string[] }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'table'; readonly rows: readonly (readonly string[])[] }

export function parseBlocks(page: string): readonly Block[] {
  const lines = page.replace(/<!--[\s\S]*?-->/g, '').split('\n')
  const blocks: Block[] = []
  while (lines.length > 0) {
    const line = lines.shift() as string
    if (line.trim() === '') continue
    const heading = /^(#{1,6}) (.*)/.exec(line)
    if (heading) blocks.push({ kind: 'heading', level: heading[1]?.length ?? 1, text: heading[2] ?? '' })
    else if (line.startsWith('```')) {
      blocks.push({ kind: 'code', text: takeWhile(lines, (next) => !next.startsWith('```')).join('\n') })
      lines.shift()
    } else if (line.startsWith('- ')) blocks.push({ kind: 'list', items: items([line, ...takeWhile(lines, isText)]) })
    else if (line.startsWith('|')) blocks.push({ kind: 'table', rows: cells([line, ...takeWhile(lines, isText)]) })
    else blocks.push({ kind: 'text', text: [line, ...takeWhile(lines, isText)].join(' ') })
  }
  return blocks
}

const isText = (line: string): boolean => line.trim() !== '' && !line.startsWith('#') && !line.startsWith('```')

function takeWhile(lines: string[], matches: (line: string) => boolean): readonly string[] {
  const end = lines.findIndex((line) => !matches(line))
  return lines.splice(0, end < 0 ? lines.length : end)
}

/** The items of a list. Indented lines continue the previous item. */
const items = (lines: readonly string[]): readonly string[] =>
  lines
    .map((line) => (line.startsWith('- ') ? `\n${line.slice(2)}` : ` ${line.trim()}`))
    .join('')
    .trim()
    .split('\n')

const cells = (lines: readonly string[]): readonly (readonly string[])[] =>
  lines
    .filter((line) => !/^[|\s:-]+$/.test(line))
    .map((line) =>
      line
        .replace(/^\||\|\s*$/g, '')
        .split('|')
        .map((cell) => cell.trim()),
    )

/** A part of a line: plain text, code or a link. */
export interface InlinePart {
  readonly text: string
  readonly code?: true
  readonly link?: string
}

export function parseInline(text: string): readonly InlinePart[] {
  const parts: InlinePart[] = []
  for (const [, code, label, link, plain] of text.matchAll(/`([^`]+)`|\[([^\]]+)\]\(([^)]+)\)|([^`[]+|[`[])/g)) {
    if (code !== undefined) parts.push({ text: code, code: true })
    else if (label !== undefined) parts.push({ text: label.replaceAll('`', ''), link: link ?? '' })
    else parts.push({ text: plain ?? '' })
  }
  return parts
}
