import type { ChatOptions } from '../chat/chat.ts'
import { modelNames } from '../chat/model-names.ts'
import type { Chat } from '../core/chat.ts'

/** A chat that is loaded when somebody first asks something: most gateways only carry calls. */
export function lazyChat(options: ChatOptions): Chat & AsyncDisposable {
  let opening: Promise<Chat & AsyncDisposable> | undefined
  const open = () => {
    opening ??= import('../chat/chat.ts').then(({ createChat }) => createChat(options))
    return opening
  }
  return {
    models: () => modelNames(options.models, options.config),
    async *answer(request) {
      yield* (await open()).answer(request)
    },
    async [Symbol.asyncDispose]() {
      await (await opening)?.[Symbol.asyncDispose]()
    },
  }
}
