import type { Page } from '../routing/route.ts'

export type Shortcut = { readonly go: Page } | 'help' | 'search' | 'escape' | 'pause'

/** `g` followed by this letter opens the page. */
export const letters: Readonly<Record<Page, string>> = {
  overview: 'o',
  servers: 's',
  tools: 't',
  chat: 'h',
  calls: 'c',
  policy: 'p',
  audit: 'a',
  config: 'f',
}

/** Maximum time between `g` and the letter, in milliseconds. */
const patience = 1500

/** Recognizes shortcuts in a sequence of keys, each with its time. */
export function createShortcuts(): (key: string, at: number) => Shortcut | undefined {
  let armedAt: number | undefined
  return (key, at) => {
    const armed = armedAt !== undefined && at - armedAt <= patience
    armedAt = undefined
    if (armed) {
      const page = (Object.keys(letters) as Page[]).find((name) => letters[name] === key)
      if (page) return { go: page }
    }
    if (key === 'g') {
      armedAt = at
      return undefined
    }
    return Object.hasOwn(single, key) ? single[key] : undefined
  }
}

const single: Readonly<Record<string, Shortcut>> = { '?': 'help', '/': 'search', Escape: 'escape', p: 'pause' }
