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
import type { CallStatus, InnerCall } from './answer.ts'
import {
  failureWords,
  hostRefusal,
  type ProgramCall,
  programFailure,
  readProgramCall,
  readProgramCalls,
  resultJson,
} from './program-messages.ts'
import { visibleLine } from './text.ts'
import { resolveTool } from './tool-names.ts'

/** Limits per program. The host enforces them and does not rely on the sandbox. */
export const codeLimits = {
  calls: 200,
  inFlight: 8,
  /** Max characters per request, including the arguments. */
  question: 1024 * 1024,
  /** Max characters in all pending requests together. */
  open: 8 * 1024 * 1024,
  /** Max characters per response. */
  answer: 1024 * 1024,
}

export type CodeLimits = Readonly<typeof codeLimits>

/** How many characters the response to one request may still have. */
type AnswerRoom = { left: number }

/** The host side of a sandbox. It treats all input as if a hostile program had written it. */
export class ProgramBridge {
  readonly #access: Access
  /** The `execute_code` call that runs the program. Calls that the program makes are its children. */
  readonly #call: Call
  readonly #limits: CodeLimits
  readonly #clock: Clock
  readonly #calls: InnerCall[] = []
  readonly #slots: FairSemaphore
  readonly #over = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  #made = 0
  #answered = 0
  /** Characters in all pending requests. */
  #open = 0

  constructor(access: Access, call: Call, limits: CodeLimits, clock: Clock) {
    this.#access = access
    this.#call = call
    this.#limits = limits
    this.#clock = clock
    this.#slots = new FairSemaphore({ slots: limits.inFlight })
  }

  async host(name: string, input: string, signal: AbortSignal): Promise<string> {
    const { question, open } = this.#limits
    if (this.#over.signal.aborted) throw hostRefusal('CANCELLED', programOver)
    if (input.length > question || this.#open + input.length > open) {
      const sentence = `A call's arguments may have at most ${question} characters. Send less at a time.`
      throw new HostRefusal('INVALID_ARGUMENTS', sentence)
    }
    using ending = abortWith(signal, programCancelled)
    const until = AbortSignal.any([this.#call.signal, this.#over.signal, ending.signal])
    const work = (async () => this.#respond(name, input, until))()
    this.#underWay.add(work)
    this.#open += input.length
    try {
      return await work
    } finally {
      this.#underWay.delete(work)
      this.#open -= input.length
    }
  }

  /** Cancels the calls in flight, waits for them to end, and returns all calls that the program made. */
  async end(): Promise<readonly InnerCall[]> {
    this.#over.abort(programCancelled())
    await Promise.allSettled(this.#underWay)
    return this.#calls
  }

  #respond(name: string, input: string, signal: AbortSignal): Promise<string> {
    const room = { left: this.#limits.answer }
    if (name === 'call') return this.#answer(readProgramCall(input), room, signal)
    if (name === 'calls') return this.#answerAll(readProgramCalls(input, this.#limits.calls), room, signal)
    throw hostRefusal('INVALID_ARGUMENTS', `There is no host function "${name.slice(0, 100)}".`)
  }

  /** Runs a batch of calls in parallel, for languages whose programs cannot await several calls at once. */
  async #answerAll(questions: readonly ProgramCall[], room: AnswerRoom, signal: AbortSignal): Promise<string> {
    const answers = questions.map((question) =>
      this.#answer(question, room, signal).then(
        (value) => `{"value":${value}}`,
        ({ code, message }: HostRefusal) => JSON.stringify({ error: { code, message } }),
      ),
    )
    return `[${(await Promise.all(answers)).join(',')}]`
  }

  /** Runs one call. Returns the result for the program as JSON text, or throws a HostRefusal. */
  async #answer(question: ProgramCall, room: AnswerRoom, signal: AbortSignal): Promise<string> {
    const { calls } = this.#limits
    if (++this.#made > calls) {
      const sentence = `The program reached the limit of ${calls} calls. Request more in each call.`
      throw new HostRefusal('OVERLOADED', sentence)
    }
    const { server, tool } = question
    const call = this.#call
    const started = this.#clock.monotonic()
    const spelling = visibleLine(server === undefined ? tool : `${server}.${tool}`, 100)
    // Until it ends, count the call as refused.
    const record: InnerCall = { tool: spelling, status: 'refused', code: undefined, durationMs: 0 }
    this.#calls.push(record)
    const end = (status: CallStatus, code?: string) =>
      Object.assign(record, { status, code, durationMs: this.#clock.monotonic() - started })
    let sent = false
    try {
      using _ = await this.#slots.take(call.caller.principal, signal)
      const wait = { signal, parent: call.id }
      const { entry } = await resolveTool(this.#access.view(call.caller), question, wait)
      record.tool = `${entry.server}.${entry.name}`
      const asked = { server: entry.server, tool: entry.name, args: question.args }
      const starting = () => {
        sent = true
      }
      const { progressToken: _own, ...meta } = call.input.meta
      const carried = { caller: call.caller, timeoutMs: undefined, meta, peer: programPeer, starting }
      const result = await endWith(signal, runNestedCall(this.#access, { ...call, signal }, asked, carried))
      const text = textFor(result, record.tool, room.left)
      end(result.isError ? 'error' : 'ok', typeof text === 'string' ? undefined : text.code)
      if (typeof text !== 'string') throw text
      room.left -= text.length
      return text
    } catch (thrown) {
      if (thrown instanceof HostRefusal) throw thrown
      const { status, refusal } = programFailure(thrown, sent)
      end(status, refusal.code)
      throw refusal
    } finally {
      this.#tellProgress()
    }
  }

  #tellProgress(): void {
    const { input, signal, peer } = this.#call
    const { progressToken } = input.meta
    this.#answered += 1
    if (progressToken === undefined || this.#over.signal.aborted || signal.aborted) return
    peer.notify('notifications/progress', Json.of({ progressToken, progress: this.#answered }))
  }
}

/** The result as text for the program, or an error if the tool failed or its result is too large. */
function textFor({ body, isError, refusal }: Result, tool: string, room: number): string | HostRefusal {
  if (isError) return hostRefusal(refusal?.code ?? 'TOOL_ERROR', failureWords(body.value))
  // A result may hold the same data twice, as text and as structured content, so it may be larger than `room`. Do not
  // even parse a result that is larger than that.
  const text = body.bytes.length > 4 * room + 4096 ? undefined : resultJson(body)
  if (text !== undefined && text.length <= room) return text
  const sentence = `${tool} ran, but its result is too large for the program (${room} characters left). Request less.`
  return new HostRefusal('RESULT_TOO_LARGE', sentence)
}

const programOver = 'The program ended before this call returned.'
const programCancelled = () => new ToolwayError('CANCELLED', programOver)

const cannotAsk = 'A program cannot ask a person. Call this tool directly, not from execute_code.'

/**
 * The peer for a program's calls. A program has no user to ask, so a call that needs approval waits for people who can
 * answer elsewhere, but only until the program's time is over.
 */
const programPeer = quietPeer(() =>
  Promise.reject(new ToolwayError('DENIED_BY_POLICY', cannotAsk, { auditReason: 'not_approved' })),
)
