import { type ChatLoop, type ChatRun, ignoringFailure, stage } from './chat-run.ts'
import { isResumed } from './conversation.ts'
import { answerDirectly } from './stages/answer.ts'
import { call } from './stages/call.ts'
import { discover } from './stages/discover.ts'
import { execute, roundMessages } from './stages/execute.ts'
import { interpret } from './stages/interpret.ts'
import { select } from './stages/select.ts'
import { callsToMake, isForClient, namedTool } from './tool-set.ts'

/** The staged loop (S3) runs each stage once; a tool that the request names needs no selection. If selection or calling fails, the model answers without tools (S5). */
export async function* staged(run: ChatRun): ChatLoop {
  const { request, messages } = run
  const named = namedTool(request)
  if (isResumed(messages) && !named && request.toolChoice !== 'required') {
    yield stage(run, 'interpret')
    return yield* interpret(run, messages)
  }
  if (request.toolChoice === 'none') return yield* answerDirectly(run)

  yield stage(run, 'discover')
  const toolSet = await discover(run)
  if (toolSet.tools.length === 0) return yield* answerDirectly(run)

  let failure: string | undefined
  const failed = (reason: string) => {
    failure = reason
  }
  const withoutTools = (problem: string) =>
    run.note(
      failure === undefined
        ? `The model did not ${problem}; it answers without tools.`
        : `The model answers without tools, because a request to it failed: ${failure}`,
    )
  if (!named) yield stage(run, 'select')
  const selected = named ? toolSet : await ignoringFailure(run, select(run, toolSet), failed)
  if (!selected) withoutTools('select tools in a usable form')
  const mustCall = request.toolChoice === 'required'
  const chosen = selected?.tools.length ? selected : selected && mustCall ? toolSet : undefined
  if (!chosen) return yield* answerDirectly(run)

  yield stage(run, 'call')
  const called = await call(run, chosen, failed)
  if (!called) {
    withoutTools('make usable tool calls')
    return yield* answerDirectly(run)
  }
  if ('answer' in called) {
    yield { kind: 'text', text: called.answer }
    return { reason: called.reason }
  }

  yield stage(run, 'execute')
  const made = callsToMake(request, called.calls)
  const theirs = made.filter(isForClient)
  const ours = made.filter((one) => !isForClient(one))
  const round = roundMessages('', made, yield* execute(run, ours), called.reasoning)
  if (theirs.length > 0) {
    const calls = theirs.map((one) => one.call)
    return { reason: 'calls', handed: await run.clientToolState.keep(request.caller, round, calls) }
  }
  yield stage(run, 'interpret')
  return yield* interpret(run, [...messages, ...round])
}
