import { describe, expect, test } from 'vitest'
import type { PubSub } from '../../src/core/cluster.ts'
import { until } from '../fixtures/until.ts'

/** What every PubSub must do. `create` returns this many that are connected to each other. */
export function pubSubContract(name: string, create: (count: number) => Promise<readonly PubSub[]>): void {
  describe(`B10: messages between replicas in ${name}`, () => {
    const joined = async () => {
      const [one, other, third] = (await create(3)) as [PubSub, PubSub, PubSub]
      await connected([one, other, third])
      return { one, other, third }
    }

    test('all other replicas receive messages in order, and the sender does not', async () => {
      const { one, other, third } = await joined()
      const heard = [one, other, third].map((pubSub) => listTo(pubSub, 'a'))
      const texts = Array.from({ length: 20 }, (_, number) => `${number} "ü"\n`)
      for (const text of texts) one.publish('a', text)
      await until(() => heard[1]?.length === 20 && heard[2]?.length === 20, { what: 'what was told' })
      expect(heard).toEqual([[], texts, texts])
      // Whatever comes back to the one that told it has come before this.
      other.publish('a', 'last')
      await until(() => heard[0]?.includes('last'), { what: 'the last word' })
      expect(heard[0]).toEqual(['last'])
    })

    test('topics are separate, and an empty text is delivered, too', async () => {
      const { one, other } = await joined()
      const [a, b] = [listTo(other, 'a'), listTo(other, 'b')]
      one.publish('a', '')
      one.publish('nobody listens for this', 'x')
      one.publish('b', 'text')
      await until(() => b.length > 0, { what: 'the second' })
      expect([a, b]).toEqual([[''], ['text']])
    })

    test('a listener that throws does not affect others, and a disposed one receives nothing', async () => {
      const { one, other } = await joined()
      const early: string[] = []
      const disposed = other.subscribe('a', (text) => void early.push(text))
      using _failing = other.subscribe('a', () => {
        throw new Error('a bug')
      })
      const late = listTo(other, 'a')
      one.publish('a', '1')
      await until(() => late.length === 1, { what: 'the first' })
      disposed[Symbol.dispose]()
      one.publish('a', '2')
      await until(() => late.length === 2, { what: 'the second' })
      expect([early, late]).toEqual([['1'], ['1', '2']])
    })
  })
}

const listTo = (pubSub: PubSub, topic: string): string[] => {
  const heard: string[] = []
  pubSub.subscribe(topic, (text) => void heard.push(text))
  return heard
}

/** Waits until each hears all others. */
export async function connected(all: readonly PubSub[]): Promise<void> {
  const heard = all.map((pubSub) => listTo(pubSub, 'hello'))
  const complete = () => heard.every((from) => new Set(from).size === all.length - 1)
  await until(
    () => {
      for (const [index, pubSub] of all.entries()) pubSub.publish('hello', String(index))
      return complete()
    },
    { what: 'all to hear one another' },
  )
}
