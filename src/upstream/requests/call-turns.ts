import type { Peer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'

/** Whether calls of a tool send messages (requests, log messages) to the caller before they respond. */
export type ToolHabit = 'speaks' | 'quiet'

/**
 * Attributes requests and log messages to parallel calls on a connection that does not say which call they belong to.
 * One call at a time is the speaker: it was sent last, and the others have finished, wait for a response to a request
 * of theirs, or call tools that never send messages. A speaker yields as soon as it asks, ends or has been silent for
 * a while, so that neither a slow person nor a slow tool delays the others.
 */
export interface CallTurns {
  /** Sends a call when it is its turn, and tracks it until it ends. `name` is what is called. */
  run<T>(name: string, peer: Peer, signal: AbortSignal, work: () => Promise<T>): Promise<T>
  /** The call that sent the current message, if that is certain. */
  speaker(): Peer | undefined
  /** All calls that may have sent the current message, most likely first. */
  speakers(): readonly Peer[]
  runs(speaker: Peer): boolean
  /** Whether log messages are attributed too. */
  readonly strict: boolean
  /** Releases all waiting calls: the connection is closed. */
  close(): void
}

interface Turn {
  readonly name: string
  /** The caller, as the server's requests reach it. */
  readonly voice: Peer
  spoke: boolean
  /** Open requests to the caller: a call that waits for a response sends no messages. */
  open: number
}

/** How long a silent call makes others wait. */
const silenceMs = 250

/**
 * With `strict`, calls of unknown tools take turns too: their owner may be several clients. Calls of one session wait
 * for one another only if their tools are known to ask.
 */
export function createCallTurns(clock: Clock, habits: Map<string, ToolHabit>, strict = true): CallTurns {
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
          // Requests that were sent together arrive together: the next call waits until all have been read.
          setImmediate(() => speaker === turn && turn.open > 0 && pass())
          try {
            return await peer.ask(method, params, signal)
          } finally {
            // The response lets the call continue, so it may send messages again.
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
    // Several requests of one call may have been answered.
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
    // Calls that already run come before those that were not sent yet.
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

  /** Calls of a tool that sent no message need not wait for one another. */
  function becomeQuiet(name: string): void {
    habits.set(name, 'quiet')
    for (const turn of [...waiting.keys()]) if (turn.name === name && !running.has(turn)) go(turn)
  }

  /** Calls that do not wait for a response; the speaker may have sent several requests at once. */
  function free(): Turn[] {
    return [...running].filter((turn) => turn === speaker || turn.open === 0)
  }

  function certain(): Peer | undefined {
    const [only, ...others] = free().filter(({ name }) => habits.get(name) !== 'quiet')
    return only !== undefined && only === speaker && others.length === 0 ? only.voice : undefined
  }

  function speakers(): readonly Peer[] {
    // Calls tend to ask early: the one sent last is the most likely.
    const suspects = free().reverse()
    // Calls that wait for a response are the least likely.
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
