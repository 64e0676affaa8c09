import type { Chat } from '../core/chat.ts'

/**
 * A chat that survives reloads: each answer finishes with the configuration that it started with. `within` keeps the
 * current chat open until the work is done.
 */
export const reloadableChat = (
  current: () => Chat,
  within: (work: (chat: Chat) => Promise<void>) => Promise<void>,
): Chat => ({
  models: () => current().models(),
  visionModels: () => current().visionModels(),
  async *answer(request) {
    const opened = Promise.withResolvers<Chat>()
    const closed = Promise.withResolvers<void>()
    const finished = within((chat) => {
      opened.resolve(chat)
      return closed.promise
    })
    finished.catch(opened.reject)
    try {
      yield* (await opened.promise).answer(request)
    } finally {
      closed.resolve()
    }
  },
})
