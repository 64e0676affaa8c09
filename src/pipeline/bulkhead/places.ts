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
export const backlogMs = ({ limit, waiting, meanMs = unknownMs }: Places): number => (meanMs * (waiting + 1)) / limit
