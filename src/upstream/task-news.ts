import { Json } from '../core/json.ts'

/** Who hears what a server of the era with sessions tells of its tasks, by the ids under which the server knows them. */
export interface TaskNews {
  follow(taskId: string, told: (news: Buffer) => void): void
  tell(news: Buffer | undefined): void
}

/** A server may start tasks and never tell that they have ended: who has waited longest is told no more. */
const maxFollowed = 1_000

const ends: readonly unknown[] = ['completed', 'failed', 'cancelled']

/** One for each line: two processes of a server may well give two tasks the same id. */
export function createTaskNews(): TaskNews {
  const followers = new Map<unknown, (news: Buffer) => void>()
  return {
    follow(taskId, told) {
      followers.set(taskId, told)
      const [longest] = followers.keys()
      if (followers.size > maxFollowed) followers.delete(longest)
    },
    tell(news = Buffer.from('{}')) {
      const { taskId, status } = Json.raw<Record<string, unknown>>(news).value
      followers.get(taskId)?.(news)
      if (ends.includes(status)) followers.delete(taskId)
    },
  }
}
