import type { Turn } from './turn.ts'

/** A conversation as it is kept in the browser. */
export interface StoredChat {
  readonly id: string
  readonly title: string
  readonly updatedAt: number
  readonly turns: readonly Turn[]
}

/** How many conversations are kept, and how many characters they may have together. The oldest are removed first. */
export const maxChats = 50
const maxCharacters = 2_000_000

const prefix = 'toolway.chat.'

type ChatStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>

/**
 * The conversations of one user in the browser's storage. Each has its own key, so that two tabs do not overwrite each
 * other's conversations. If storage is unavailable or full, conversations last until the page is closed.
 */
export function createChatStore(storage: ChatStorage | undefined, principal: string) {
  const start = `${prefix}${encodeURIComponent(principal)}.`

  function keys(): readonly string[] {
    if (!storage) return []
    const all = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? '')
    return all.filter((key) => key.startsWith(start))
  }

  /** All conversations with their sizes, the latest first. */
  function read() {
    return keys()
      .flatMap((key) => {
        const text = storage?.getItem(key) ?? ''
        const chat = parseChat(text)
        return chat && start + chat.id === key ? [{ key, chat, size: text.length }] : []
      })
      .sort((one, other) => other.chat.updatedAt - one.chat.updatedAt)
  }

  return {
    list: (): readonly StoredChat[] => read().map(({ chat }) => chat),
    /** Saves a conversation and removes the oldest ones as needed. Returns whether it has been saved. */
    save(chat: StoredChat): boolean {
      const text = JSON.stringify({ ...chat, turns: chat.turns.map(withoutImages) })
      if (!storage || text.length > maxCharacters) return false
      const others = read().filter(({ chat: { id } }) => id !== chat.id)
      let total = text.length
      for (const [index, { key, size }] of others.entries()) {
        total += size
        if (index + 2 > maxChats || total > maxCharacters) storage.removeItem(key)
      }
      for (;;) {
        try {
          storage.setItem(start + chat.id, text)
          return true
        } catch {
          // Other data of this origin may take up the space.
          const oldest = read()
            .filter(({ chat: { id } }) => id !== chat.id)
            .at(-1)
          if (!oldest) return false
          storage.removeItem(oldest.key)
        }
      }
    },
    remove: (id: string): void => storage?.removeItem(start + id),
    clear(): void {
      for (const key of keys()) storage?.removeItem(key)
    },
    /** Whether a change of this key, in another tab, concerns this user's conversations. */
    owns: (key: string | null): boolean => key === null || key.startsWith(start),
  }
}

const withoutImages = (turn: Turn): Turn => ({
  ...turn,
  images: turn.images.map(({ name }) => ({ name, url: undefined })),
})

/** Reads a stored conversation; undefined if it is damaged or from an incompatible version. */
function parseChat(text: string): StoredChat | undefined {
  try {
    const chat = JSON.parse(text) as StoredChat
    const isChat =
      typeof chat.id === 'string' &&
      typeof chat.title === 'string' &&
      typeof chat.updatedAt === 'number' &&
      Array.isArray(chat.turns) &&
      chat.turns.every(isTurn)
    // An answer that was being written when the page was closed has stopped.
    return isChat ? { ...chat, turns: chat.turns.map((turn) => ({ ...turn, state: endOf(turn) })) } : undefined
  } catch {
    return undefined
  }
}

const endOf = ({ state }: Turn): Turn['state'] => (state === 'running' ? 'stopped' : state)

const isTurn = (turn: Turn): boolean =>
  typeof turn === 'object' &&
  [turn.question, turn.text, turn.thinking].every((text) => typeof text === 'string') &&
  [turn.images, turn.steps, turn.calls, turn.notes].every((list) => Array.isArray(list))

/** The beginning of the first question. */
export function titleOf(question: string): string {
  const line = question.replace(/\s+/g, ' ').trim()
  return line === '' ? 'Image' : line.length > 60 ? `${line.slice(0, 59)}…` : line
}
