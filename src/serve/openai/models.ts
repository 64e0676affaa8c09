import type { Chat } from '../../core/chat.ts'
import { didYouMean } from '../../core/near.ts'
import { notFound } from './errors.ts'

/** The model that a request asks for, else the one that answers by default; refuses what is not there. */
export function chosenModel(chat: Chat | undefined, asked: string | undefined): { chat: Chat; model: string } {
  const known = chat?.models() ?? []
  const [usual] = known
  if (!chat || usual === undefined) throw notFound(noModel, { param: 'model', code: 'model_not_found' })
  if (asked === undefined) return { chat, model: usual }
  if (!known.includes(asked)) throw unknownModel(asked, known)
  return { chat, model: asked }
}

export const unknownModel = (asked: string, known: readonly string[]) => {
  const shown = JSON.stringify(asked.length > 64 ? `${asked.slice(0, 64)}…` : asked)
  const near = didYouMean(asked, known, '.')
  const sentence = `There is no model ${shown}${near} There is ${known.join(', ') || 'none'}: use one of them, or add it to models in the configuration.`
  return notFound(sentence, { param: 'model', code: 'model_not_found' })
}

/** A model in the words of OpenAI. */
export const modelView = (id: string, created: number) => ({ id, object: 'model', created, owned_by: 'toolway' })

const noModel =
  'No model is configured here: add one to models in the configuration ({"kind": "openai", "baseUrl": …, "model": …}) and name it in chat.model. docs/chat-endpoint.md shows how.'
