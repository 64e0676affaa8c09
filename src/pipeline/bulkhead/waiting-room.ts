import type { Call } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { callAgain, durationText } from '../../lib/duration.ts'

/** Calls of one agent to one server, the oldest first. */
export interface WaitingQueue {
  readonly key: string
  readonly waiters: Set<QueuedCall>
}

export interface QueuedCall {
  readonly call: Call
  readonly needs: Needs
  goOn(): void
  refuse(error: Error): void
}

/** How long a call waits, and what sets it. */
export interface MaxWait {
  readonly ms: number
  readonly from: string
}

/** Where calls wait for a place: bounded, for a bounded time, and in turn. */
export interface WaitingRoom {
  readonly size: number
  /** Settles when the call may go on, its places taken; rejects when it has waited too long or is over. */
  wait(call: Call, needs: Needs, maxWait: MaxWait): Promise<void>
  /** Asks the first of each lane, in turn, whether it goes on now; one who does not keeps its turn. */
  serve(goesOn: (needs: Needs) => boolean): void
}

/**
 * Agents take turns at every server: lanes stand in a ring, and one that was served goes to its end. One that cannot
 * be served yet keeps its place in the ring, so that its turn comes as soon as it can.
 */
export function createWaitingRoom(options: { queue(): number; readonly clock: Clock }): WaitingRoom {
  const lanes = new Map<string, WaitingQueue>()
  let size = 0

  const counted = ({ whole, server, agent }: Needs, by: 1 | -1) => {
    size += by
    for (const places of [whole, server, agent] as (Places | undefined)[]) if (places) places.waiting += by
  }

  const leave = (lane: WaitingQueue, waiter: QueuedCall) => {
    lane.waiters.delete(waiter)
    if (lane.waiters.size === 0) lanes.delete(lane.key)
    counted(waiter.needs, -1)
  }

  /** The last of the longest lane leaves for one of a shorter lane: who fills the room takes it from nobody else. */
  const makeRoom = (forLane: string): boolean => {
    let longest: WaitingQueue | undefined
    for (const lane of lanes.values()) if (lane.waiters.size > (longest?.waiters.size ?? 0)) longest = lane
    const own = lanes.get(forLane)?.waiters.size ?? 0
    if (!longest || longest.waiters.size <= own + 1) return false
    let last: QueuedCall | undefined
    for (const waiter of longest.waiters) last = waiter
    last?.refuse(overloaded(last.call, last.needs, 'others who wait have to get their turn, too'))
    return true
  }

  return {
    get size() {
      return size
    },
    async wait(call, needs, { ms, from }) {
      const { signal } = call
      signal.throwIfAborted()
      // Neither has a space in its name, so no two lanes have the same key.
      const key = `${call.caller.agent} ${call.entry.server}`
      if (size >= options.queue() && !makeRoom(key)) throw overloaded(call, needs, 'as many are waiting as may wait')
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const lane = lanes.get(key) ?? { key, waiters: new Set() }
      const waiter: QueuedCall = { call, needs, goOn: () => end(resolve), refuse: (error) => end(() => reject(error)) }
      const gone = () => waiter.refuse(signal.reason)
      const tooLong = () =>
        waiter.refuse(overloaded(call, needs, `none of them ended within ${durationText(ms)} (${from})`))
      const timer = options.clock.after(ms, tooLong)
      signal.addEventListener('abort', gone, { once: true })
      lanes.set(key, lane)
      lane.waiters.add(waiter)
      counted(needs, 1)
      return promise

      function end(settle: () => void): void {
        timer[Symbol.dispose]()
        signal.removeEventListener('abort', gone)
        leave(lane, waiter)
        settle()
      }
    },
    serve(goesOn) {
      for (const lane of lanes.values()) {
        const [first] = lane.waiters
        if (!first || !hasPlace(first.needs.whole)) return
        if (!goesOn(first.needs)) continue
        first.goOn()
        // At the end of the ring it comes up again in this same round.
        if (lanes.delete(lane.key)) lanes.set(lane.key, lane)
      }
    },
  }
}

/** What a call needs a place of. */
export interface Needs {
  readonly whole: Places
  readonly server: Places | undefined
  readonly agent: Places | undefined
}

/** Sooner than this nobody should come back, however quick the calls are; later than that is a guess about nothing. */
const soonestMs = 100
const latestMs = 60_000

/** Refuses a call for which there is no place (B7): what is full, and when there may be room again. */
function overloaded({ entry, caller }: Call, { whole, server, agent }: Needs, why: string): ToolwayError {
  const full: (readonly [string, Places])[] = []
  if (server && !hasPlace(server)) full.push([`The server ${entry.server}`, server])
  if (agent && !hasPlace(agent)) full.push([`The agent ${caller.agent}`, agent])
  if (full.length === 0 || !hasPlace(whole)) full.push(['Toolway', whole])
  const [who, { limit }] = full[0] as (typeof full)[number]
  const backlog = Math.max(...full.map(([, places]) => backlogMs(places)))
  const retryAfterMs = Math.ceil(Math.min(Math.max(backlog, soonestMs), latestMs))
  const busy = `${who} has ${limit === 1 ? 'a call' : `${limit} calls`} in flight, as many as allowed`
  const sentence = `${busy}, and ${why}. Nothing was sent: ${callAgain(retryAfterMs)}.`
  return new ToolwayError('OVERLOADED', sentence, { server: entry.server, retryAfterMs })
}

/** The places of a server, of an agent, or of the whole gateway. */
export interface Places {
  limit: number
  inFlight: number
  /** Calls that need one of these, and perhaps others too. */
  waiting: number
  /** How long a place was held lately; undefined before the first was given back. */
  meanMs: number | undefined
}

export const createPlaces = (limit: number): Places => ({ limit, inFlight: 0, waiting: 0, meanMs: undefined })

/** Whether there is one to take; whatever has no limit always has. */
export const hasPlace = (places: Places | undefined): boolean => places === undefined || places.inFlight < places.limit

export function takePlace(places: Places | undefined): void {
  if (places) places.inFlight++
}

export function giveBack(places: Places | undefined, heldMs: number): void {
  if (!places) return
  places.inFlight--
  // The mean follows the last calls, so that estimates are about now.
  places.meanMs = places.meanMs === undefined ? heldMs : places.meanMs * 0.8 + heldMs * 0.2
}

/** What is reckoned with where nothing is known yet. */
const unknownMs = 1_000

/** How long it takes until those who wait have had their turn, at the pace of the last calls. */
const backlogMs = ({ limit, waiting, meanMs = unknownMs }: Places): number => (meanMs * (waiting + 1)) / limit
