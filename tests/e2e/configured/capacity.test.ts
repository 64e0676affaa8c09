import { expect, test } from 'vitest'
import type { WrittenConfig } from '../../fixtures/config-file.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { keyFor } from '../admin/people.ts'
import { caller, reading } from './ask.ts'
import { type RecordingMcpServer, startRecordingMcpServer } from './recording-server.ts'

/** A gateway before one or two servers that answer when they are let go. */
async function crowded(config: (recorder: RecordingMcpServer, other: RecordingMcpServer) => WrittenConfig) {
  await using open = new AsyncDisposableStack()
  const recorder = open.use(await startRecordingMcpServer())
  const other = open.use(await startRecordingMcpServer())
  const toolway = open.use(await startToolway(config(recorder, other)))
  const running = open.move()
  return { recorder, other, toolway, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

const agents = { narrow: { allow: { servers: ['*'] }, concurrency: 1 }, wide: { allow: { servers: ['*'] } } }

const queued = (toolway: LocalToolway, count: number) =>
  until(async () => (await reading(toolway, 'toolway_queue_depth')) === count, { what: `${count} calls to wait` })

const arrived = (recorder: RecordingMcpServer, count: number) =>
  until(() => recorder.held === count, { what: `${count} calls to arrive` })

test('B7: the concurrency of a server applies to it, and to no other', async () => {
  await using here = await crowded(({ url }, other) => ({
    mcpServers: { one: { url, concurrency: 1 }, two: { url: other.url } },
  }))
  const { toolway, recorder, other } = here
  const call = await caller(toolway)
  const calls = [call('one__hold'), call('one__hold')]
  await queued(toolway, 1)
  await arrived(recorder, 1)
  calls.push(call('two__hold'), call('two__hold'))
  await arrived(other, 2)
  other.release()
  recorder.release()
  await arrived(recorder, 1)
  recorder.release()
  expect(await Promise.all(calls)).toEqual(['held', 'held', 'held', 'held'])
})

test('B7: the concurrency of an agent applies to it, and to no other', async () => {
  await using here = await crowded(({ url }) => ({ mcpServers: { one: { url } }, agents }))
  const { toolway, recorder } = here
  const narrow = await caller(toolway, 'narrow')
  const wide = await caller(toolway, 'wide')
  const calls = [narrow('one__hold'), narrow('one__hold')]
  await queued(toolway, 1)
  await arrived(recorder, 1)
  calls.push(wide('one__hold'), wide('one__hold'))
  await arrived(recorder, 3)
  recorder.release()
  await arrived(recorder, 1)
  recorder.release()
  expect(await Promise.all(calls)).toEqual(['held', 'held', 'held', 'held'])
})

test('W12, B7: with limits.per: client, the concurrency of an agent applies to each of its clients', async () => {
  const keys = ['one', 'two'].map((id) => keyFor(id, ['narrow']))
  const auth = { keys: keys.map(({ configured }) => configured) }
  await using here = await crowded(({ url }) => ({
    mcpServers: { one: { url } },
    agents,
    auth,
    limits: { per: 'client' },
  }))
  const { toolway, recorder } = here
  const [one, two] = await Promise.all(keys.map(({ key }) => caller({ ...toolway, token: key }, 'narrow')))
  const calls = [one?.('one__hold'), one?.('one__hold')]
  await queued(toolway, 1)
  calls.push(two?.('one__hold'))
  await arrived(recorder, 2)
  recorder.release()
  await arrived(recorder, 1)
  recorder.release()
  expect(await Promise.all(calls)).toEqual(['held', 'held', 'held'])
})

test('B7: limits.concurrency applies to all servers together, and limits.queue to waiting calls', async () => {
  await using here = await crowded(({ url }, other) => ({
    mcpServers: { one: { url }, two: { url: other.url } },
    limits: { concurrency: 1, queue: 1 },
  }))
  const { toolway, recorder, other } = here
  const call = await caller(toolway)
  const first = call('one__hold')
  await arrived(recorder, 1)
  const second = call('two__hold')
  await queued(toolway, 1)
  expect(await call('two__hold')).toBe('OVERLOADED')
  expect(other.held).toBe(0)
  recorder.release()
  await arrived(other, 1)
  other.release()
  expect(await Promise.all([first, second])).toEqual(['held', 'held'])
})

test('G8, B7: a call that waits gets its place as soon as the limit is raised', async () => {
  const limited = ({ url }: RecordingMcpServer, concurrency: number) => ({
    mcpServers: { one: { url } },
    limits: { concurrency },
  })
  await using here = await crowded((recorder) => limited(recorder, 1))
  const { toolway, recorder } = here
  const call = await caller(toolway)
  const calls = [call('one__hold'), call('one__hold')]
  await queued(toolway, 1)
  await toolway.rewrite(limited(recorder, 2))
  expect(await toolway.gateway.reload()).toMatchObject({ successes: 1 })
  await arrived(recorder, 2)
  recorder.release()
  expect(await Promise.all(calls)).toEqual(['held', 'held'])
})
