import type { Peer } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'

/** What is known of a tool: whether its calls speak to the caller (questions, log messages) before they answer. */
export type Habit = 'speaks' | 'quiet'

/**
 * Attributes questions and log messages to parallel calls on a connection that does not say which call they belong to.
 *
 * One call at a time is the speaker: it was sent last, and the others are finished, wait for the answer to a question
 * of theirs, or call tools that never speak. A speaker makes room as soon as it asks, ends or has been silent for a
 * while, so that neither a slow person nor a slow tool holds up the others.
 */
export interface Turns {
  /** Sends a call when it is its turn, and follows it until it ends. `name` says what is called. */
  run<T>(name: string, peer: Peer, signal: AbortSignal, work: () => Promise<T>): Promise<T>
  /** The calls that may have spoken just now, the likeliest first; a single one if that is certain. */
  speakers(): readonly Peer[]
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

export function createTurns(clock: Clock, habits: Map<string, Habit>): Turns {
  /** Calls that the server works on, in the order in which they were sent. */
  const running = new Set<Turn>()
  const waiting = new Map<Turn, () => void>()
  let speaker: Turn | undefined
  let silence: Disposable | undefined
  let closed = false

  return { run, speakers, close }

  async function run<T>(name: string, peer: Peer, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const turn = newTurn(name, peer)
    const leave = () => depart(turn)
    signal.addEventListener('abort', leave, { once: true })
    try {
      if (habits.get(name) !== 'quiet') await take(turn)
      signal.throwIfAborted()
      running.add(turn)
      const answer = await work()
      if (!turn.spoke && !habits.has(name)) becomeQuiet(name)
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
    if (speaker) return new Promise((resolve) => waiting.set(turn, resolve))
    give(turn)
    return undefined
  }

  function give(turn: Turn): void {
    speaker = turn
    silence = clock.after(silenceMs, pass)
  }

  function pass(): void {
    silence?.[Symbol.dispose]()
    speaker = undefined
    const [next] = waiting
    if (!next) return
    const [turn, go] = next
    waiting.delete(turn)
    give(turn)
    go()
  }

  function depart(turn: Turn): void {
    running.delete(turn)
    waiting.get(turn)?.()
    waiting.delete(turn)
    if (speaker === turn) pass()
  }

  /** Calls of a tool that answered without a word need not wait for one another. */
  function becomeQuiet(name: string): void {
    habits.set(name, 'quiet')
    for (const [turn, go] of waiting) {
      if (turn.name !== name || running.has(turn)) continue
      waiting.delete(turn)
      go()
    }
  }

  function speakers(): readonly Peer[] {
    const free = [...running].filter((turn) => turn === speaker || turn.open === 0)
    const likely = free.filter(({ name }) => habits.get(name) !== 'quiet')
    if (speaker && likely.length === 1 && likely[0] === speaker) return [speaker.voice]
    // Whatever else a call that waits for an answer says, it is the last to be suspected.
    const others = [...running].reverse().filter((turn) => !free.includes(turn))
    return [...free.sort((a, b) => rank(a) - rank(b)), ...others].map(({ voice }) => voice)
  }

  function rank({ name }: Turn): number {
    const habit = habits.get(name)
    return habit === 'speaks' ? 0 : habit === 'quiet' ? 2 : 1
  }

  function close(): void {
    closed = true
    silence?.[Symbol.dispose]()
    speaker = undefined
    for (const go of waiting.values()) go()
    waiting.clear()
  }
}
