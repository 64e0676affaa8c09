import type { Chat } from '../core/chat.ts'

/**
 * A chat whose configuration may change: each answer runs to its end with the one that it began with. `within` does
 * something with the chat of the present configuration, which is not closed before that is done.
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
