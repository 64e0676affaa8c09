import type { Page } from '../routing/route.ts'

/** What keys mean. */
export type Shortcut = { readonly go: Page } | 'help' | 'search' | 'escape' | 'pause'

/** The letter behind `g` that leads to each page. */
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

/** How long `g` waits for its letter. */
const patience = 1500

/** Keys one after the other, each with its time; knows what they mean together. */
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
