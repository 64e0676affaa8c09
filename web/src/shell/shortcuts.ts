import type { PageName } from '../routing/route.ts'

export type Shortcut = { readonly go: PageName } | 'help' | 'search' | 'escape' | 'pause'

/** The letter that opens each page when it is typed after `g`. */
export const pageKeys: Readonly<Record<PageName, string>> = {
  overview: 'o',
  servers: 's',
  tools: 't',
  skills: 'l',
  pins: 'd',
  chat: 'h',
  calls: 'c',
  approvals: 'r',
  policy: 'p',
  keys: 'k',
  audit: 'a',
  config: 'f',
}

/** Max time between `g` and the letter, in milliseconds. */
const sequenceTimeoutMs = 1500

/** Recognizes shortcuts in a sequence of keys. `at` is the time of the key press in milliseconds. */
export function createShortcuts(): (key: string, at: number) => Shortcut | undefined {
  let pendingSince: number | undefined
  return (key, at) => {
    const pending = pendingSince !== undefined && at - pendingSince <= sequenceTimeoutMs
    pendingSince = undefined
    if (pending) {
      const page = (Object.keys(pageKeys) as PageName[]).find((name) => pageKeys[name] === key)
      if (page) return { go: page }
    }
    if (key === 'g') {
      pendingSince = at
      return undefined
    }
    return Object.hasOwn(singleKeys, key) ? singleKeys[key] : undefined
  }
}

const singleKeys: Readonly<Record<string, Shortcut>> = { '?': 'help', '/': 'search', Escape: 'escape', p: 'pause' }
