import { createHistory, type History } from './series.ts'

/** The histories of a few agents: whoever looks at one agent alone wants to see it over time, too. */
export interface Watched {
  /** Only of those that somebody looks at. */
  find(agent: string): History | undefined
  /** Begins when it is asked for first. */
  of(agent: string): History
}

/** A busy history may take some megabytes, so that there are few; the one that was looked at longest ago makes room. */
export function createWatched(most: number): Watched {
  const histories = new Map<string, History>()
  return {
    find: (agent) => (histories.size === 0 ? undefined : histories.get(agent)),
    of(agent) {
      const history = histories.get(agent) ?? createHistory()
      histories.delete(agent)
      histories.set(agent, history)
      for (const maxAgo of histories.keys()) {
        if (histories.size <= most) break
        histories.delete(maxAgo)
      }
      return history
    },
  }
}
