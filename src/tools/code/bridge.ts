import type { Access } from '../../core/access.ts'
import type { Call, Peer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { HostRefusal, type Program } from '../../core/executor.ts'
import { Json } from '../../core/json.ts'
import type { Result } from '../../core/result.ts'
import { runNestedCall } from '../meta/nested-call.ts'
import { createCallLog, type InnerCall } from './call-log.ts'
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
  /** The call that runs the program; parent of the program's calls. */
  readonly call: Call
  readonly limits: CodeLimits
  readonly clock: Clock
}

/** The host side of a sandbox. Treats all input as written by a hostile program. */
export interface Bridge {
  readonly host: Program['host']
  /** Cancels the calls in flight. */
  end(): Promise<readonly InnerCall[]>
}

export function createBridge({ access, call, limits, clock }: BridgeOptions): Bridge {
  const over = new AbortController()
  const ledger = createCallLog(clock)
  const gate = createGate(limits.inFlight)
  const underWay = new Set<Promise<unknown>>()
  const { progressToken, ...meta } = call.input.meta
  let made = 0
  let answered = 0
  let open = 0

  /** Runs one call and returns the program's result as JSON text; throws a HostRefusal. */
  async function answer(question: ProgramCall, room: { left: number }, signal: AbortSignal): Promise<string> {
    if (++made > limits.calls) throw tooMany(limits.calls)
    const { server, tool } = question
    const record = ledger.begin(plainText(server === undefined ? tool : `${server}.${tool}`, 100))
    let sent = false
    try {
      using _ = await gate.enter(signal)
      const { entry } = await resolveTool(access.view(call.caller), question, { signal })
      record.named(`${entry.server}.${entry.name}`)
      const asked = { server: entry.server, tool: entry.name, args: question.args }
      const carried = { caller: call.caller, timeoutMs: undefined, meta, peer: unasked }
      sent = true
      const result = await waitFor(runNestedCall(access, { ...call, signal }, asked, carried), signal)
      const said = saidBy(result, asked, room.left)
      record.end(result.isError ? 'error' : 'ok', typeof said === 'string' ? undefined : said.code)
      if (typeof said !== 'string') throw said
      room.left -= said.length
      return said
    } catch (thrown) {
      if (thrown instanceof HostRefusal) throw thrown
      const { status, refusal } = failureOf(thrown, sent)
      record.end(status, refusal.code)
      throw refusal
    } finally {
      tellProgress()
    }
  }

  /** Runs a batch in parallel, for programs that cannot await several calls at once. */
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
    throw refusalOf('INVALID_ARGUMENTS', `A program cannot ask for "${name.slice(0, 100)}".`)
  }

  return {
    async host(name, input, signal) {
      if (over.signal.aborted) throw refusalOf('CANCELLED', programOver)
      if (input.length > limits.question || open + input.length > limits.open) throw tooLong(limits.question)
      using ending = linked(signal)
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
    async end() {
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

/** An error if the program cannot have the result although the tool has run. */
function saidBy(
  result: Result,
  { server, tool }: { server: string; tool: string },
  room: number,
): string | HostRefusal {
  const { body, isError, refusal } = result
  if (isError) return refusalOf(refusal?.code ?? 'TOOL_ERROR', wordsOf(body.value))
  // A result may hold the same data twice, as text and as structured content; anything larger is not even parsed.
  const text = body.bytes.length > 4 * room + 4096 ? undefined : unwrapped(body.value)
  if (text !== undefined && text.length <= room) return text
  const sentence = `${server}.${tool} has run, but its answer is larger than a program can take at once (${room} characters left). Ask it for less.`
  return new HostRefusal('RESULT_TOO_LARGE', sentence)
}

const programOver = 'The program was over before this call was answered.'
const cancelled = () => new ToolwayError('CANCELLED', programOver)

const tooMany = (calls: number) =>
  new HostRefusal('OVERLOADED', `A program may make ${calls} calls, and this one has. Ask for more in each call.`)

const tooLong = (characters: number) =>
  new HostRefusal('INVALID_ARGUMENTS', `The arguments of a call may have ${characters} characters. Send less at once.`)

/** Aborts with our own error when the sandbox's signal aborts. */
function linked(signal: AbortSignal): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const abort = () => controller.abort(cancelled())
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  return { signal: controller.signal, [Symbol.dispose]: () => signal.removeEventListener('abort', abort) }
}

/** A FIFO semaphore. */
interface Gate {
  enter(signal: AbortSignal): Promise<Disposable>
}

function createGate(places: number): Gate {
  let free = places
  const waiting = new Set<() => void>()

  const leave = () => {
    const [next] = waiting
    if (next === undefined) free++
    else next()
  }

  return {
    async enter(signal) {
      signal.throwIfAborted()
      if (free > 0) free--
      else await turn(signal)
      return { [Symbol.dispose]: leave }
    },
  }

  function turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        waiting.delete(admit)
        reject(signal.reason)
      }
      const admit = () => {
        waiting.delete(admit)
        signal.removeEventListener('abort', stop)
        resolve()
      }
      signal.addEventListener('abort', stop, { once: true })
      waiting.add(admit)
    })
  }
}

/** A program has no user to ask, so a call that needs approval fails closed. Notifications are not passed on. */
const unasked: Peer = {
  rounds: false,
  logLevel: undefined,
  notify() {},
  ask: () =>
    Promise.reject(
      new ToolwayError(
        'DENIED_BY_POLICY',
        'Nobody can be asked from inside a program. Call this tool by itself, outside of execute_code, so that a person can answer.',
        { auditReason: 'not_approved' },
      ),
    ),
}

/** Limits per program. The host enforces them and does not rely on the sandbox. */
export interface CodeLimits {
  readonly calls: number
  readonly inFlight: number
  /** Characters of one request, arguments included. */
  readonly question: number
  /** Characters of all pending requests. */
  readonly open: number
  /** Characters of one response. */
  readonly answer: number
}

export const codeLimits: CodeLimits = {
  calls: 200,
  inFlight: 8,
  question: 1024 * 1024,
  open: 8 * 1024 * 1024,
  answer: 1024 * 1024,
}

/** Max characters of the whole result of `execute_code`. */
export const maxAnswer = 24_000
