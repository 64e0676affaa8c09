import { type Peer, wrapPeer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'

/** Whether calls to a tool send messages (requests, log messages) to the caller before they respond. */
export type ToolMessaging = 'speaks' | 'quiet'

/**
 * Attributes requests and log messages to parallel calls on a connection that does not show which call they belong to.
 * One call at a time is the speaker: it was sent last, and all other calls have finished, are waiting for a response
 * from their caller, or are calls to tools that never send messages. A call stops being the speaker as soon as it sends
 * a request to its caller, ends, or has sent nothing for a while, so that neither a slow person nor a slow tool delays
 * the other calls.
 */
export interface CallTurns {
  /** Waits for a call's turn, sends the call, and tracks it until it ends. `name` identifies the entry. */
  run<T>(name: string, peer: Peer, signal: AbortSignal, work: () => Promise<T>): Promise<T>
  /** The call that sent the current message, if that is certain. */
  speaker(): Peer | undefined
  /** All calls that may have sent the current message, most likely first. */
  speakers(): readonly Peer[]
  runs(speaker: Peer): boolean
  /** Whether log messages are also attributed to calls. */
  readonly strict: boolean
  /** Releases all waiting calls, because the connection is closed. */
  close(): void
}

interface Turn {
  readonly name: string
  /** The route through which the server's requests reach the caller. */
  readonly voice: Peer
  spoke: boolean
  /** How many requests to the caller are open. A call that is waiting for a response sends no messages. */
  open: number
}

/** How long a call that sends no messages makes others wait. */
const silenceMs = 250

interface CallTurnsOptions {
  /**
   * Whether calls to tools take turns even if it is not known whether the tools send messages, because several clients
   * may act as the connection's owner. Otherwise, calls wait for one another only if their tools are known to send
   * messages.
   */
  readonly strict: boolean
  /** Resolves when the server has read what it was sent: a server on a busy machine is not silent, but late. */
  caughtUp(): Promise<void>
}

export function createCallTurns(
  clock: Clock,
  habits: Map<string, ToolMessaging>,
  { strict, caughtUp }: CallTurnsOptions,
): CallTurns {
  const running = new Set<Turn>()
  const waiting = new Map<Turn, PromiseWithResolvers<void>>()
  let speaker: Turn | undefined
  /** Ends when the speaker has sent nothing for a while. */
  let silence: Disposable | undefined
  let isSilent = false
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
      voice: wrapPeer(peer, {
        notify(method, params) {
          spoke(turn)
          peer.notify(method, params)
        },
        async ask(...params) {
          spoke(turn)
          turn.open++
          // Requests that were sent together arrive together, so read all of them before the next call's turn.
          setImmediate(() => speaker === turn && turn.open > 0 && pass())
          try {
            return await peer.ask(...params)
          } finally {
            // The response lets the call continue, so it may send messages again.
            if (running.has(turn)) await take(turn)
            turn.open--
          }
        },
      }),
      spoke: false,
      open: 0,
    }
    return turn
  }

  function spoke(turn: Turn): void {
    if (speaker === turn) listen()
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
    // The call may already be waiting, if several of its requests were answered.
    const place = waiting.get(turn) ?? Promise.withResolvers<void>()
    waiting.set(turn, place)
    if (isSilent) void passIfRead()
    return place.promise
  }

  function give(turn: Turn): void {
    speaker = turn
    listen()
  }

  function listen(): void {
    silence?.[Symbol.dispose]()
    isSilent = false
    silence = clock.after(silenceMs, () => {
      isSilent = true
      if (waiting.size > 0) void passIfRead()
    })
  }

  /** Ends the turn of a silent call, unless it sends something before the server has read it. */
  async function passIfRead(): Promise<void> {
    const silenceBefore = silence
    isSilent = false
    await caughtUp()
    if (silence === silenceBefore) pass()
  }

  function pass(): void {
    silence?.[Symbol.dispose]()
    silence = undefined
    isSilent = false
    speaker = undefined
    // Calls that are already running come before those that have not been sent yet.
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

  /** Marks a tool as quiet: its calls sent no message, so they need not wait for one another. */
  function becomeQuiet(name: string): void {
    habits.set(name, 'quiet')
    for (const turn of [...waiting.keys()]) if (turn.name === name && !running.has(turn)) go(turn)
  }

  /** Calls that may send messages: those without open requests, and the speaker, even if it has some. */
  function free(): Turn[] {
    return [...running].filter((turn) => turn === speaker || turn.open === 0)
  }

  function certain(): Peer | undefined {
    const [only, ...others] = free().filter(({ name }) => habits.get(name) !== 'quiet')
    return only !== undefined && only === speaker && others.length === 0 ? only.voice : undefined
  }

  function speakers(): readonly Peer[] {
    // Servers usually send their requests early in a call, so the call that was sent last is the most likely sender.
    const suspects = free().reverse()
    // Calls that are waiting for a response are the least likely senders.
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
    silence = undefined
    speaker = undefined
    for (const turn of [...waiting.keys()]) go(turn)
  }
}
