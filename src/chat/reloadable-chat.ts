import type { Chat } from '../core/chat.ts'

/**
 * A chat that survives reloads: each answer finishes with the configuration it started with. `within` keeps the current
 * chat open until the work is done.
 */
export const reloadableChat = (
  present: () => Chat,
  within: (work: (chat: Chat) => Promise<void>) => Promise<void>,
): Chat => ({
  models: () => present().models(),
  async *answer(request) {
    const begun = Promise.withResolvers<Chat>()
    const over = Promise.withResolvers<void>()
    const held = within((chat) => {
      begun.resolve(chat)
      return over.promise
    })
    held.catch(begun.reject)
    try {
      yield* (await begun.promise).answer(request)
    } finally {
      over.resolve()
    }
  },
})
