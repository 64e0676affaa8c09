import type { Access } from '../../core/access.ts'
import { type Call, quietPeer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { abortWith, endWith } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { HostRefusal } from '../../core/executor.ts'
import { FairSemaphore } from '../../core/limits/fair-semaphore.ts'
import type { Result } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { runNestedCall } from '../meta/nested-call.ts'
import { createCallLog, type InnerCall } from './answer.ts'
import {
  failureOf,
  type ProgramCall,
  readProgramCall,
  readProgramCalls,
  refusalOf,
  unwrapped,
  wordsOf,
} from './program-messages.ts'
import { plainText } from './text.ts'
import { resolveTool } from './tool-names.ts'

export interface BridgeOptions {
  readonly access: Access
  /** The `execute_code` call that runs the program. Calls that the program makes are its children. */
  readonly call: Call
  readonly limits: CodeLimits
  readonly clock: Clock
}

/** Limits per program. The host enforces them and does not rely on the sandbox. */
export interface CodeLimits {
  readonly calls: number
  readonly inFlight: number
  /** Max characters per request, including the arguments. */
  readonly question: number
  /** Max characters in all pending requests together. */
  readonly open: number
  /** Max characters per response. */
  readonly answer: number
}

export const codeLimits: CodeLimits = {
  calls: 200,
  inFlight: 8,
  question: 1024 * 1024,
  open: 8 * 1024 * 1024,
  answer: 1024 * 1024,
}

/** The host side of a sandbox. It treats all input as if a hostile program had written it. */
export function createBridge({ access, call, limits, clock }: BridgeOptions) {
  const over = new AbortController()
  const ledger = createCallLog(clock)
  const slots = new FairSemaphore({ slots: limits.inFlight })
  const underWay = new Set<Promise<unknown>>()
  const { progressToken, ...meta } = call.input.meta
  let made = 0
  let answered = 0
  let open = 0

  /** Runs one call. Returns the result for the program as JSON text, or throws a HostRefusal. */
  async function answer(question: ProgramCall, room: { left: number }, signal: AbortSignal): Promise<string> {
    if (++made > limits.calls) throw tooMany(limits.calls)
    const { server, tool } = question
    const record = ledger.begin(plainText(server === undefined ? tool : `${server}.${tool}`, 100))
    let sent = false
    try {
      using _ = await slots.take(call.caller.principal, signal)
      const { entry } = await resolveTool(access.view(call.caller), question, { signal, parent: call.id })
      record.named(`${entry.server}.${entry.name}`)
      const asked = { server: entry.server, tool: entry.name, args: question.args }
      const starting = () => {
        sent = true
      }
      const carried = { caller: call.caller, timeoutMs: undefined, meta, peer: unasked, starting }
      const result = await endWith(signal, runNestedCall(access, { ...call, signal }, asked, carried))
      const text = textFor(result, `${asked.server}.${asked.tool}`, room.left)
      record.end(result.isError ? 'error' : 'ok', typeof text === 'string' ? undefined : text.code)
      if (typeof text !== 'string') throw text
      room.left -= text.length
      return text
    } catch (thrown) {
      if (thrown instanceof HostRefusal) throw thrown
      const { status, refusal } = failureOf(thrown, sent)
      record.end(status, refusal.code)
      throw refusal
    } finally {
      tellProgress()
    }
  }

  /** Runs a batch of calls in parallel, for languages whose programs cannot await several calls at once. */
  const answers = (questions: readonly ProgramCall[], room: { left: number }, signal: AbortSignal) =>
    Promise.all(
      questions.map((question) =>
        answer(question, room, signal).then(
          (value) => `{"value":${value}}`,
          ({ code, message }: HostRefusal) => JSON.stringify({ error: { code, message } }),
        ),
      ),
    ).then((all) => `[${all.join(',')}]`)

  function respond(name: string, input: string, signal: AbortSignal): Promise<string> {
    const room = { left: limits.answer }
    if (name === 'call') return answer(readProgramCall(input), room, signal)
    if (name === 'calls') return answers(readProgramCalls(input, limits.calls), room, signal)
    throw refusalOf('INVALID_ARGUMENTS', `There is no host function "${name.slice(0, 100)}".`)
  }

  return {
    async host(name: string, input: string, signal: AbortSignal): Promise<string> {
      if (over.signal.aborted) throw refusalOf('CANCELLED', programOver)
      if (input.length > limits.question || open + input.length > limits.open) throw tooLong(limits.question)
      using ending = abortWith(signal, cancelled)
      const work = (async () => respond(name, input, AbortSignal.any([call.signal, over.signal, ending.signal])))()
      underWay.add(work)
      open += input.length
      try {
        return await work
      } finally {
        underWay.delete(work)
        open -= input.length
      }
    },
    /** Cancels the calls in flight, waits for them to end, and returns all calls that the program made. */
    async end(): Promise<readonly InnerCall[]> {
      over.abort(cancelled())
      await Promise.allSettled(underWay)
      return ledger.calls
    },
  }

  function tellProgress(): void {
    answered += 1
    if (progressToken === undefined || over.signal.aborted || call.signal.aborted) return
    call.peer.notify('notifications/progress', Json.of({ progressToken, progress: answered }))
  }
}

/** The result as text for the program, or an error if the tool failed or its result is too large. */
function textFor({ body, isError, refusal }: Result, tool: string, room: number): string | HostRefusal {
  if (isError) return refusalOf(refusal?.code ?? 'TOOL_ERROR', wordsOf(body.value))
  // A result may hold the same data twice, as text and as structured content, so it may be larger than `room`. Do not
  // even parse a result that is larger than that.
  const text = body.bytes.length > 4 * room + 4096 ? undefined : unwrapped(body)
  if (text !== undefined && text.length <= room) return text
  const sentence = `${tool} ran, but its result is too large for the program (${room} characters left). Request less.`
  return new HostRefusal('RESULT_TOO_LARGE', sentence)
}

const programOver = 'The program ended before this call returned.'
const cancelled = () => new ToolwayError('CANCELLED', programOver)

const tooMany = (calls: number) =>
  new HostRefusal('OVERLOADED', `The program reached the limit of ${calls} calls. Request more in each call.`)

const tooLong = (characters: number) =>
  new HostRefusal(
    'INVALID_ARGUMENTS',
    `A call's arguments may have at most ${characters} characters. Send less at a time.`,
  )

const cannotAsk = 'A program cannot ask a person. Call this tool directly, not from execute_code.'

/**
 * The peer for a program's calls. A program has no user to ask, so a call that needs approval waits for people who can
 * answer elsewhere, but only until the program's time is over.
 */
const unasked = quietPeer(() =>
  Promise.reject(new ToolwayError('DENIED_BY_POLICY', cannotAsk, { auditReason: 'not_approved' })),
)
