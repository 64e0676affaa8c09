import { withSystem } from '../conversation.ts'
import { type Loop, reasonOf, stage, type Turn } from '../turn.ts'
import { speak } from './speak.ts'

/** Answers without any tools. */
export async function* direct(turn: Turn): Loop {
  yield stage('answer')
  const { text, reason } = yield* speak(turn, { messages: withSystem(turn.prompt('direct'), turn.messages) })
  if (text.trim() === '') turn.note('The model gave an empty answer.')
  return { reason: reasonOf(reason) }
}
