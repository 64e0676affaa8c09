import type { Peer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'

/** What is known of a tool: whether its calls speak to the caller (questions, log messages) before they answer. */
export type ToolHabit = 'speaks' | 'quiet'

/**
 * Attributes questions and log messages to parallel calls on a connection that does not say which call they belong to.
 *
 * One call at a time is the speaker: it was sent last, and the others are finished, wait for the answer to a question
 * of theirs, or call tools that never speak. A speaker makes room as soon as it asks, ends or has been silent for a
 * while, so that neither a slow person nor a slow tool holds up the others.
 */
export interface CallTurns {
  /** Sends a call when it is its turn, and follows it until it ends. `name` says what is called. */
  run<T>(name: string, peer: Peer, signal: AbortSignal, work: () => Promise<T>): Promise<T>
  /** The call that has spoken just now, where that is certain. */
  speaker(): Peer | undefined
  /** All calls that may have spoken just now, the likeliest first. */
  speakers(): readonly Peer[]
  /** Whether the call of a speaker is still under way. */
  runs(speaker: Peer): boolean
  /** Whether log messages are told apart, too. */
  readonly strict: boolean
  /** Lets everybody go: the connection is closed. */
  close(): void
}

interface Turn {
  readonly name: string
  /** The caller, as the server's questions reach it. */
  readonly voice: Peer
  spoke: boolean
  /** Open questions: a call that waits for an answer does not speak. */
  open: number
}

/** How long a silent call keeps others waiting. */
const silenceMs = 250

/**
 * With `strict`, calls of tools of which nothing is known take turns, too: their owner may be several clients. The
 * calls of one session wait for one another only if their tools are known to ask.
 */
export function createCallTurns(clock: Clock, habits: Map<string, ToolHabit>, strict = true): CallTurns {
  /** Calls that the server works on, in the order in which they were sent. */
  const running = new Set<Turn>()
  const waiting = new Map<Turn, PromiseWithResolvers<void>>()
  let speaker: Turn | undefined
  let silence: Disposable | undefined
  let closed = false

  return { run, speaker: certain, speakers, runs, strict, close }

  async function run<T>(name: string, peer: Peer, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const turn = newTurn(name, peer)
    const leave = () => depart(turn)
    signal.addEventListener('abort', leave, { once: true })
    try {
      if (strict ? habits.get(name) !== 'quiet' : habits.get(name) === 'speaks') await take(turn)
      signal.throwIfAborted()
      running.add(turn)
      const answer = await work()
      if (strict && !turn.spoke && !habits.has(name)) becomeQuiet(name)
      return answer
    } finally {
      signal.removeEventListener('abort', leave)
      depart(turn)
    }
  }

  function newTurn(name: string, peer: Peer): Turn {
    const turn: Turn = {
      name,
      voice: {
        rounds: peer.rounds,
        get logLevel() {
          return peer.logLevel
        },
        notify(method, params) {
          spoke(turn)
          peer.notify(method, params)
        },
        async ask(method, params, signal) {
          spoke(turn)
          turn.open++
          // Questions that were sent together arrive together: the next call waits until all have been read.
          setImmediate(() => speaker === turn && turn.open > 0 && pass())
          try {
            return await peer.ask(method, params, signal)
          } finally {
            // The answer lets the call run on, so that it may speak again.
            if (running.has(turn)) await take(turn)
            turn.open--
          }
        },
      },
      spoke: false,
      open: 0,
    }
    return turn
  }

  function spoke(turn: Turn): void {
    if (turn.spoke) return
    turn.spoke = true
    habits.set(turn.name, 'speaks')
  }

  function take(turn: Turn): Promise<void> | undefined {
    if (closed || speaker === turn) return undefined
    if (!speaker) {
      give(turn)
      return undefined
    }
    // Several questions of one call may have been answered.
    const place = waiting.get(turn) ?? Promise.withResolvers<void>()
    waiting.set(turn, place)
    return place.promise
  }

  function give(turn: Turn): void {
    speaker = turn
    silence = clock.after(silenceMs, pass)
  }

  function pass(): void {
    silence?.[Symbol.dispose]()
    speaker = undefined
    // Calls that the server has begun come before those that it has not.
    const turns = [...waiting.keys()]
    const next = turns.find((turn) => running.has(turn)) ?? turns[0]
    if (!next) return
    give(next)
    go(next)
  }

  function go(turn: Turn): void {
    waiting.get(turn)?.resolve()
    waiting.delete(turn)
  }

  function depart(turn: Turn): void {
    running.delete(turn)
    go(turn)
    if (speaker === turn) pass()
  }

  /** Calls of a tool that answered without a word need not wait for one another. */
  function becomeQuiet(name: string): void {
    habits.set(name, 'quiet')
    for (const turn of [...waiting.keys()]) if (turn.name === name && !running.has(turn)) go(turn)
  }

  /** Calls that do not wait for an answer; the speaker may have sent several questions at once. */
  function free(): Turn[] {
    return [...running].filter((turn) => turn === speaker || turn.open === 0)
  }

  function certain(): Peer | undefined {
    const [only, ...others] = free().filter(({ name }) => habits.get(name) !== 'quiet')
    return only !== undefined && only === speaker && others.length === 0 ? only.voice : undefined
  }

  function speakers(): readonly Peer[] {
    // Who asks mostly asks soon: the call that was sent last is the likeliest.
    const suspects = free().reverse()
    // Whatever else a call that waits for an answer says, it is the last to be suspected.
    const others = [...running].reverse().filter((turn) => !suspects.includes(turn))
    return [...suspects.sort((a, b) => rank(a) - rank(b)), ...others].map(({ voice }) => voice)
  }

  function runs(voice: Peer): boolean {
    return [...running].some((turn) => turn.voice === voice)
  }

  function rank(turn: Turn): number {
    if (turn === speaker) return 0
    const habit = habits.get(turn.name)
    return habit === 'speaks' ? 1 : habit === 'quiet' ? 3 : 2
  }

  function close(): void {
    closed = true
    silence?.[Symbol.dispose]()
    speaker = undefined
    for (const turn of [...waiting.keys()]) go(turn)
  }
}
