export type StreamState = 'live' | 'reconnecting' | 'offline'

export const waitBefore = (failures: number): number => Math.min(15_000, 500 * 2 ** Math.max(0, failures - 1))

/** After three failures in a row, tell the user that the data is stale. */
export const stateAfter = (failures: number, networkUp: boolean): StreamState => {
  if (!networkUp || failures >= 3) return 'offline'
  return 'reconnecting'
}

/** The server sends an event every second, so a connection that is silent for longer is dead. */
export const silenceLimit = 10_000
