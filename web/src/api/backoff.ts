/** Whether events arrive, are on their way again, or have been missing for long. */
export type StreamState = 'live' | 'reconnecting' | 'offline'

/** How long to wait before the next attempt, after so many that failed. */
export const waitBefore = (failures: number): number => Math.min(15_000, 500 * 2 ** Math.max(0, failures - 1))

/** After three failures in a row nobody should think that what they see is fresh. */
export const stateAfter = (failures: number, networkUp: boolean): StreamState => {
  if (!networkUp || failures >= 3) return 'offline'
  return 'reconnecting'
}

/** The server says something every second; a connection this silent is dead, whatever the browser believes. */
export const silenceLimit = 10_000
