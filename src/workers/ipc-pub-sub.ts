import type { Log } from '../core/log.ts'
import { createTopicListeners, type PubSub, type TopicListeners } from '../core/pub-sub.ts'
import type { Line } from './line.ts'

/** What the first process does for a worker that tells something. */
export type Spreads = {
  spread(topic: string, text: string): void
}

/** What a worker is told by the first process. */
export type Hears = {
  hear(topic: string, text: string): void
}

/** What one worker tells all the others, by way of the first process. */
export function ipcPubSub(line: Line<Spreads>, log: Log): PubSub & Pick<TopicListeners, 'deliver'> {
  return { ...createTopicListeners(log), publish: (topic, text) => line.tell('spread', topic, text) }
}

/** In the first process: passes on what a worker tells. */
export const spreadTo = (others: () => Iterable<{ readonly line: Line<Hears> }>): Spreads['spread'] => {
  return (topic, text) => {
    for (const { line } of others()) line.tell('hear', topic, text)
  }
}
