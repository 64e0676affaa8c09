import type { Clock } from '../../core/clock.ts'
import { type ErrorCode, type ErrorDetails, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'

/** Where messages to another process go and come from: the channel of a child, or a message port. */
export interface Port {
  /** Throws, or tells false, where nobody is at the other end. */
  send(message: unknown): unknown
  onMessage(listener: (message: unknown) => void): void
}

/** What one side can be asked for, by name. Only what survives being copied goes in and out. */
// biome-ignore lint/suspicious/noExplicitAny: the types of each table are its own.
export type Answers = Readonly<Record<string, (...given: any[]) => unknown>>

/** A line to another process, which can be asked as `Theirs` says. */
export interface Line<Theirs extends Answers> {
  /** Whether the other side has answered lately. */
  readonly up: boolean
  /**
   * What the other side answers; undefined where it does not, so that whoever asks has a way of its own. Rejects with
   * what the other side threw, if that was one of our errors.
   */
  ask<Name extends keyof Theirs & string>(
    name: Name,
    ...given: Parameters<Theirs[Name]>
  ): Promise<Awaited<ReturnType<Theirs[Name]>> | undefined>
  /** The same without an answer. What is told and asked arrives in this order. */
  tell<Name extends keyof Theirs & string>(name: Name, ...given: Parameters<Theirs[Name]>): void
}

export interface LineOptions {
  readonly port: Port
  /** What the other side may ask of us. */
  readonly answers: Answers
  /** Who is at the other end, for the log. */
  readonly other: string
  /** How long an answer to a question may take. */
  patienceMs?(name: string): number
  readonly clock: Clock
  readonly log: Log
}

/** An answer that takes longer does not help a call any more. */
export const usualMs = 500
/** So many questions in a row without an answer, and nobody waits for one before it has been heard of again. */
const maxUnanswered = 3
/** How often one that does not answer is asked all the same. */
const probeMs = 1_000
/** Questions that wait for an answer, which bounds what a busy process holds. */
const maxWaiting = 10_000

interface Question {
  readonly id?: number
  readonly ask: string
  readonly given: readonly unknown[]
}

interface Answer {
  readonly answers: number
  readonly value?: unknown
  readonly thrown?: { readonly code: ErrorCode; readonly message: string; readonly details: ErrorDetails }
}

/** Both ends are alike: each asks, and each answers. */
export function createLine<Theirs extends Answers>(options: LineOptions): Line<Theirs> {
  const { port, answers, other, patienceMs = () => usualMs, clock, log } = options
  const waiting = new Map<number, (answer: Answer | undefined) => void>()
  let last = 0
  let unanswered = 0
  let triedAt = Number.NEGATIVE_INFINITY

  const isUp = () => unanswered < maxUnanswered

  const send = (message: Question | Answer): boolean => {
    try {
      return port.send(message) !== false
    } catch {
      return false
    }
  }

  const missed = () => {
    unanswered++
    if (unanswered === maxUnanswered) log.warn({}, `${other} does not answer`)
  }

  const heard = () => {
    if (!isUp()) log.info({}, `${other} answers again`)
    unanswered = 0
  }

  const answer = async ({ id, ask, given }: Question): Promise<void> => {
    const run = Object.hasOwn(answers, ask) ? answers[ask] : undefined
    try {
      const value = await run?.(...given)
      if (id !== undefined) send({ answers: id, value })
    } catch (thrown) {
      const ours = thrown instanceof ToolwayError ? thrown : undefined
      if (!ours) log.error({ err: thrown, asked: ask }, `a question of ${other} could not be answered`)
      if (id === undefined) return
      const { code, message = '', details: { retryAfterMs } = {} } = ours ?? {}
      const details = retryAfterMs === undefined ? {} : { retryAfterMs }
      send({ answers: id, ...(code && { thrown: { code, message, details } }) })
    }
  }

  port.onMessage((message) => {
    if (isAnswer(message)) {
      heard()
      waiting.get(message.answers)?.(message)
    } else if (isQuestion(message)) void answer(message)
  })

  return {
    get up() {
      return isUp()
    },
    async ask(name, ...given) {
      const id = ++last
      const question = { id, ask: name, given }
      if (!isUp()) {
        // Asked now and then to see whether it is back; nobody waits for that.
        if (clock.monotonic() - triedAt < probeMs) return undefined
        triedAt = clock.monotonic()
        send(question)
        return undefined
      }
      if (waiting.size >= maxWaiting) return undefined
      const { promise, resolve } = Promise.withResolvers<Answer | undefined>()
      waiting.set(id, resolve)
      // A turn later, so that answers which came while this process was busy itself are heard first.
      using _timer = clock.after(patienceMs(name), () => void setImmediate(() => resolve(undefined)))
      if (!send(question)) resolve(undefined)
      const answered = await promise
      waiting.delete(id)
      if (answered === undefined) missed()
      if (answered?.thrown === undefined) return answered?.value as never
      const { code, message: sentence, details } = answered.thrown
      throw new ToolwayError(code, sentence, details)
    },
    tell: (name, ...given) => void send({ ask: name, given }),
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const isAnswer = (value: unknown): value is Answer => isObject(value) && typeof value.answers === 'number'

const isQuestion = (value: unknown): value is Question =>
  isObject(value) && typeof value.ask === 'string' && Array.isArray(value.given)
