import { type Peer, wrapPeer } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'

/** Whether calls to a tool send messages (requests, log messages) to the caller before they respond. */
export type ToolMessaging = 'speaks' | 'quiet'

interface Turn {
  readonly name: string
  /** The route through which the server's requests reach the caller. */
  readonly peer: Peer
  hasSpoken: boolean
  /** How many requests to the caller are open. A call that is waiting for a response sends no messages. */
  open: number
}

/** How long a call that sends no messages makes others wait. */
const turnSilenceMs = 250

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

/**
 * Attributes requests and log messages to parallel calls on a connection that does not show which call they belong to.
 * One call at a time is the speaker: it was sent last, and all other calls have finished, are waiting for a response
 * from their caller, or are calls to tools that never send messages. A call stops being the speaker as soon as it sends
 * a request to its caller, ends, or has sent nothing for a while, so that neither a slow person nor a slow tool delays
 * the other calls.
 */
export class CallTurns {
  /** Whether log messages are also attributed to calls. */
  readonly strict: boolean
  readonly #clock: Clock
  readonly #messaging: Map<string, ToolMessaging>
  readonly #caughtUp: () => Promise<void>
  readonly #running = new Set<Turn>()
  readonly #waiting = new Map<Turn, PromiseWithResolvers<void>>()
  #speaker: Turn | undefined
  /** Ends when the speaker has sent nothing for a while. */
  #silence: Disposable | undefined
  #isSilent = false
  #isClosed = false

  constructor(clock: Clock, messaging: Map<string, ToolMessaging>, { strict, caughtUp }: CallTurnsOptions) {
    this.#clock = clock
    this.#messaging = messaging
    this.strict = strict
    this.#caughtUp = caughtUp
  }

  /** Waits for a call's turn, sends the call, and tracks it until it ends. `name` identifies the entry. */
  async run<T>(name: string, peer: Peer, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const turn = this.#turn(name, peer)
    const leave = () => this.#leave(turn)
    const known = this.#messaging.get(name)
    signal.addEventListener('abort', leave, { once: true })
    try {
      if (this.strict ? known !== 'quiet' : known === 'speaks') await this.#take(turn)
      signal.throwIfAborted()
      this.#running.add(turn)
      const answer = await work()
      if (this.strict && !turn.hasSpoken && !this.#messaging.has(name)) this.#becomeQuiet(name)
      return answer
    } finally {
      signal.removeEventListener('abort', leave)
      leave()
    }
  }

  /** The call that sent the current message, if that is certain. */
  speaker(): Peer | undefined {
    const [only, ...others] = this.#free().filter(({ name }) => this.#messaging.get(name) !== 'quiet')
    return only !== undefined && only === this.#speaker && others.length === 0 ? only.peer : undefined
  }

  /** All calls that may have sent the current message, most likely first. */
  speakers(): readonly Peer[] {
    // Servers usually send their requests early in a call, so the call that was sent last is the most likely sender.
    const suspects = this.#free().reverse()
    // Calls that are waiting for a response are the least likely senders.
    const others = [...this.#running].reverse().filter((turn) => !suspects.includes(turn))
    return [...suspects.sort((a, b) => this.#rank(a) - this.#rank(b)), ...others].map(({ peer }) => peer)
  }

  runs(speaker: Peer): boolean {
    return [...this.#running].some(({ peer }) => peer === speaker)
  }

  /** Releases all waiting calls, because the connection is closed. */
  close(): void {
    this.#isClosed = true
    this.#endTurn()
    for (const turn of [...this.#waiting.keys()]) this.#go(turn)
  }

  #turn(name: string, peer: Peer): Turn {
    const turn: Turn = {
      name,
      peer: wrapPeer(peer, {
        notify: (method, params) => {
          this.#onMessage(turn)
          peer.notify(method, params)
        },
        ask: async (...params) => {
          this.#onMessage(turn)
          turn.open++
          // Requests that were sent together arrive together, so read all of them before the next call's turn.
          setImmediate(() => this.#speaker === turn && turn.open > 0 && this.#pass())
          try {
            return await peer.ask(...params)
          } finally {
            // The response lets the call continue, so it may send messages again.
            if (this.#running.has(turn)) await this.#take(turn)
            turn.open--
          }
        },
      }),
      hasSpoken: false,
      open: 0,
    }
    return turn
  }

  #onMessage(turn: Turn): void {
    if (this.#speaker === turn) this.#listen()
    if (turn.hasSpoken) return
    turn.hasSpoken = true
    this.#messaging.set(turn.name, 'speaks')
  }

  #take(turn: Turn): Promise<void> | undefined {
    if (this.#isClosed || this.#speaker === turn) return undefined
    if (!this.#speaker) {
      this.#give(turn)
      return undefined
    }
    // The call may already be waiting, if several of its requests were answered.
    const place = this.#waiting.get(turn) ?? Promise.withResolvers<void>()
    this.#waiting.set(turn, place)
    if (this.#isSilent) void this.#passIfRead()
    return place.promise
  }

  #give(turn: Turn): void {
    this.#speaker = turn
    this.#listen()
  }

  #listen(): void {
    this.#silence?.[Symbol.dispose]()
    this.#isSilent = false
    this.#silence = this.#clock.after(turnSilenceMs, () => {
      this.#isSilent = true
      if (this.#waiting.size > 0) void this.#passIfRead()
    })
  }

  /** Ends the turn of a silent call, unless it sends something before the server has read it. */
  async #passIfRead(): Promise<void> {
    const before = this.#silence
    this.#isSilent = false
    await this.#caughtUp()
    if (this.#silence === before) this.#pass()
  }

  #endTurn(): void {
    this.#silence?.[Symbol.dispose]()
    this.#silence = undefined
    this.#isSilent = false
    this.#speaker = undefined
  }

  #pass(): void {
    this.#endTurn()
    // Calls that are already running come before those that have not been sent yet.
    const turns = [...this.#waiting.keys()]
    const next = turns.find((turn) => this.#running.has(turn)) ?? turns[0]
    if (!next) return
    this.#give(next)
    this.#go(next)
  }

  #go(turn: Turn): void {
    this.#waiting.get(turn)?.resolve()
    this.#waiting.delete(turn)
  }

  #leave(turn: Turn): void {
    this.#running.delete(turn)
    this.#go(turn)
    if (this.#speaker === turn) this.#pass()
  }

  /** Marks a tool as quiet: its calls sent no message, so they need not wait for one another. */
  #becomeQuiet(name: string): void {
    this.#messaging.set(name, 'quiet')
    for (const turn of [...this.#waiting.keys()]) if (turn.name === name && !this.#running.has(turn)) this.#go(turn)
  }

  /** Calls that may send messages: those without open requests, and the speaker, even if it has some. */
  #free(): Turn[] {
    return [...this.#running].filter((turn) => turn === this.#speaker || turn.open === 0)
  }

  #rank(turn: Turn): number {
    if (turn === this.#speaker) return 0
    const known = this.#messaging.get(turn.name)
    return known === 'speaks' ? 1 : known === 'quiet' ? 3 : 2
  }
}
