import { expect, test } from 'vitest'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import type { CapturedCall } from '../core/captures.ts'
import { createTopicListeners, type PubSub, type TopicListeners } from '../core/cluster.ts'
import { silentLog } from '../core/log.ts'
import { shareCaptures } from './shared-captures.ts'

const captured = (id: string) => ({ id, server: 'files', arguments: { text: `{"of":"${id}"}` } }) as CapturedCall

/** Processes that have captured some calls. */
function openProcesses(...kept: readonly (readonly string[])[]) {
  const clock = createManualClock()
  const boards: TopicListeners[] = []
  const published: string[] = []
  const all = kept.map((ids) => {
    const board = createTopicListeners(silentLog)
    boards.push(board)
    const pubSub: PubSub = {
      subscribe: board.subscribe,
      publish(topic, text) {
        published.push(text)
        for (const other of boards) if (other !== board) other.deliver(topic, text)
      },
    }
    const captures = { find: (id: string) => (ids.includes(id) ? captured(id) : undefined) }
    return shareCaptures({ captures, pubSub, clock })
  })
  return { all, clock, published }
}

test('B10, V11: a captured call is found in the process that ran it; what is here is not asked for', async () => {
  const { all, published } = openProcesses(['a'], ['b'], ['c'])
  expect(await all[0]?.find('a')).toEqual(captured('a'))
  expect(published).toEqual([])
  expect(await all[0]?.find('c')).toEqual(captured('c'))
  expect(published, 'one question, one reply').toHaveLength(2)
})

test('B10, V11: a call that no process has captured is not waited for longer than half a second', async () => {
  const { all, clock } = openProcesses(['a'], ['b'])
  const found = all[0]?.find('x')
  await clock.pass(500)
  expect(await found).toBeUndefined()
  all[1]?.[Symbol.dispose]()
  const gone = all[0]?.find('b')
  await clock.pass(500)
  expect(await gone).toBeUndefined()
})

test('V11: a single process asks nobody', async () => {
  const alone = shareCaptures({ captures: { find: () => undefined }, pubSub: undefined, clock: createManualClock() })
  expect(await alone.find('a')).toBeUndefined()
})
