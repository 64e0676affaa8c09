import type { Path } from '../tree.ts'

/** Offsets of a key and of its value. */
export interface TomlPlace {
  readonly key: number
  readonly value: number
  readonly end: number
}

/** How a path is spelled as a key of the map. */
export const placeKey = (path: Path): string => path.join('\0')

/** Finds where each key of a TOML text stands. The text must be valid: a real parser has accepted it already. */
export function scanToml(text: string): Map<string, TomlPlace> {
  const places = new Map<string, TomlPlace>()
  const arrays = new Map<string, number>()
  let at = 0
  let table: Path = []

  const note = (path: Path, key: number, value: number, end: number) => {
    const known = places.has(placeKey(path))
    if (!known) places.set(placeKey(path), { key, value, end })
  }
  const blank = () => {
    for (;;) {
      while (/\s/.test(text[at] ?? '')) at++
      if (text[at] !== '#') return
      while (at < text.length && text[at] !== '\n') at++
    }
  }
  const quoted = (): string => {
    const start = at
    const quote = text[at] as string
    const fence = text.startsWith(quote.repeat(3), at) ? quote.repeat(3) : quote
    at += fence.length
    while (at < text.length && !text.startsWith(fence, at)) at += quote === '"' && text[at] === '\\' ? 2 : 1
    at += fence.length
    // Up to two quotes may stand right before a closing fence of three.
    while (fence.length === 3 && text[at] === quote) at++
    return text.slice(start + fence.length, at - fence.length)
  }
  const word = (): string => {
    if (text[at] === '"') return unescaped(quoted())
    if (text[at] === "'") return quoted()
    const start = at
    while (/[\w-]/.test(text[at] ?? '')) at++
    return text.slice(start, at)
  }
  const dotted = (): { parts: string[]; starts: number[] } => {
    const parts: string[] = []
    const starts: number[] = []
    do {
      if (parts.length > 0) at++
      blank()
      starts.push(at)
      parts.push(word())
      blank()
    } while (text[at] === '.')
    return { parts, starts }
  }
  const assignment = (base: Path) => {
    const { parts, starts } = dotted()
    at++
    blank()
    const start = at
    value([...base, ...parts])
    for (let index = 1; index <= parts.length; index++) {
      note([...base, ...parts.slice(0, index)], starts[index - 1] as number, start, at)
    }
  }
  const value = (path: Path) => {
    const start = at
    if (text[at] === '[' || text[at] === '{') {
      const close = text[at] === '[' ? ']' : '}'
      at++
      for (let index = 0; ; index++) {
        blank()
        if (text[at] === ',') at++
        blank()
        if (at >= text.length || text[at] === close) break
        if (close === '}') assignment(path)
        else item([...path, index])
      }
      at++
    } else if (text[at] === '"' || text[at] === "'") quoted()
    else {
      while (at < text.length && !/[,\]}#\n]/.test(text[at] as string)) at++
      while (at > start && /\s/.test(text[at - 1] as string)) at--
    }
  }
  const item = (path: Path) => {
    const start = at
    value(path)
    note(path, start, start, at)
  }
  const header = () => {
    const start = at
    const many = text.startsWith('[[', at)
    at += many ? 2 : 1
    const { parts, starts } = dotted()
    at += many ? 2 : 1
    let path: Path = []
    parts.forEach((part, index) => {
      path = [...path, part]
      note(path, starts[index] as number, start, at)
      const count = arrays.get(placeKey(path))
      if (index === parts.length - 1 && many) {
        arrays.set(placeKey(path), (count ?? 0) + 1)
        path = [...path, count ?? 0]
        note(path, start, start, at)
      } else if (count !== undefined) path = [...path, count - 1]
    })
    table = path
  }

  for (blank(); at < text.length; blank()) {
    if (text[at] === '[') header()
    else assignment(table)
  }
  return places
}

function unescaped(content: string): string {
  try {
    return JSON.parse(`"${content}"`) as string
  } catch {
    return content
  }
}
