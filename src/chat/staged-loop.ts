import { type Loop, stage, type Turn } from './chat-run.ts'
import { isResumed } from './conversation.ts'
import { direct } from './stages/answer.ts'
import { call } from './stages/call.ts'
import { discover } from './stages/discover.ts'
import { execute, roundMessages } from './stages/execute.ts'
import { interpret } from './stages/interpret.ts'
import { select } from './stages/select.ts'
import { isForClient } from './tool-set.ts'

/**
 * The staged loop (S3): discover, select, call, execute, interpret, each once. Where the selection or the calling
 * fails, the model answers directly (S5).
 */
export async function* staged(turn: Turn): Loop {
  const { request, messages } = turn
  if (isResumed(messages)) {
    yield stage('interpret')
    return yield* interpret(turn, messages)
  }
  if (request.toolChoice === 'none') return yield* direct(turn)

  yield stage('discover')
  const offer = await discover(turn)
  if (offer.tools.length === 0) return yield* direct(turn)

  yield stage('select')
  const selected = await orNothing(turn, select(turn, offer))
  if (!selected) turn.note('No usable selection of tools could be had from the model; it answers without any.')
  const mustCall = request.toolChoice === 'required'
  const chosen = selected?.tools.length ? selected : selected && mustCall ? offer : undefined
  if (!chosen) return yield* direct(turn)

  yield stage('call')
  const called = await call(turn, chosen)
  if (!called) {
    turn.note('No usable tool calls could be had from the model; it answers without any.')
    return yield* direct(turn)
  }
  if ('answer' in called) {
    yield { kind: 'text', text: called.answer }
    return { reason: called.reason }
  }

  yield stage('execute')
  const theirs = called.calls.filter(isForClient)
  const ran = yield* execute(
    turn,
    called.calls.filter((one) => !isForClient(one)),
  )
  const round = roundMessages('', called.calls, ran)
  if (theirs.length > 0) {
    const calls = theirs.map((one) => one.call)
    return { reason: 'calls', handed: await turn.handovers.keep(request.caller, round, calls) }
  }
  yield stage('interpret')
  return yield* interpret(turn, [...messages, ...round])
}

/** What a stage comes to; nothing where the model fails, unless that is because nobody waits for it any more. */
const orNothing = <T>(turn: Turn, work: Promise<T | undefined>): Promise<T | undefined> =>
  work.catch((error) => {
    if (turn.signal.aborted) throw error
    return undefined
  })
