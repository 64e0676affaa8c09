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
  /** The call that runs the program: each of the program's calls has it as its parent, and its caller. */
  readonly call: Call
  readonly limits: CodeLimits
  readonly clock: Clock
}

/** The host's end of a sandbox. Everything that comes over it was written by a hostile program. */
export interface Bridge {
  readonly host: Program['host']
  /** The program is over: what is under way is called off. Gives all calls that it has made. */
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

  /** One call, as JSON text of what the program gets; throws a HostRefusal. */
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

  /** One after the other would be slow where a program cannot wait for several answers at once. */
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

/** What the program gets, or why it cannot have it although the tool has run. */
function saidBy(
  result: Result,
  { server, tool }: { server: string; tool: string },
  room: number,
): string | HostRefusal {
  const { body, isError, refusal } = result
  if (isError) return refusalOf(refusal?.code ?? 'TOOL_ERROR', wordsOf(body.value))
  // A result may hold the same twice, as text and as structured content; what is larger than that is not even read.
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

/** A signal that says in our own words what the sandbox's signal says in its. */
function linked(signal: AbortSignal): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const abort = () => controller.abort(cancelled())
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  return { signal: controller.signal, [Symbol.dispose]: () => signal.removeEventListener('abort', abort) }
}

/** Lets a few in at a time; the others wait in the order in which they came. */
interface Gate {
  /** A place, to be given back by disposing of it. Rejects with the signal's reason where that aborts first. */
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

/**
 * The way back from a call inside a program: there is none. A program is nobody's conversation, so whatever needs a
 * person's yes fails closed, and what tools say on their way is as little the caller's concern as what they answer.
 */
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

/** What one program may ask of its host. The host counts, whatever the sandbox counts for itself. */
export interface CodeLimits {
  readonly calls: number
  readonly inFlight: number
  /** Characters of one question, arguments included. */
  readonly question: number
  /** Characters of all questions that are not answered yet. */
  readonly open: number
  /** Characters of one answer. */
  readonly answer: number
}

export const codeLimits: CodeLimits = {
  calls: 200,
  inFlight: 8,
  question: 1024 * 1024,
  open: 8 * 1024 * 1024,
  answer: 1024 * 1024,
}

/** Of what a program said and gave, its calls and all else: what a model is shown in characters. */
export const maxAnswer = 24_000
