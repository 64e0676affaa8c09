import { expect, test } from 'vitest'
import type { WrittenConfig } from '../../fixtures/config-file.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { until } from '../../fixtures/until.ts'
import { caller, reading } from './ask.ts'
import { type Desk, startDesk } from './desk.ts'

/** A gateway before one or two servers that answer when they are let go. */
async function crowded(config: (desk: Desk, other: Desk) => WrittenConfig) {
  await using open = new AsyncDisposableStack()
  const desk = open.use(await startDesk())
  const other = open.use(await startDesk())
  const toolway = open.use(await startToolway(config(desk, other)))
  const running = open.move()
  return { desk, other, toolway, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

const agents = { narrow: { allow: { servers: ['*'] }, concurrency: 1 }, wide: { allow: { servers: ['*'] } } }

const queued = (toolway: LocalToolway, count: number) =>
  until(async () => (await reading(toolway, 'toolway_queue_depth')) === count, { what: `${count} calls to wait` })

const arrived = (desk: Desk, count: number) => until(() => desk.held === count, { what: `${count} calls to arrive` })

test('B7: the concurrency of a server holds for it, and for no other', async () => {
  await using here = await crowded(({ url }, other) => ({
    mcpServers: { one: { url, concurrency: 1 }, two: { url: other.url } },
  }))
  const { toolway, desk, other } = here
  const call = await caller(toolway)
  const calls = [call('one__hold'), call('one__hold')]
  await queued(toolway, 1)
  await arrived(desk, 1)
  calls.push(call('two__hold'), call('two__hold'))
  await arrived(other, 2)
  other.release()
  desk.release()
  await arrived(desk, 1)
  desk.release()
  expect(await Promise.all(calls)).toEqual(['held', 'held', 'held', 'held'])
})

test('B7: the concurrency of an agent holds for it, and for no other', async () => {
  await using here = await crowded(({ url }) => ({ mcpServers: { one: { url } }, agents }))
  const { toolway, desk } = here
  const narrow = await caller(toolway, 'narrow')
  const wide = await caller(toolway, 'wide')
  const calls = [narrow('one__hold'), narrow('one__hold')]
  await queued(toolway, 1)
  await arrived(desk, 1)
  calls.push(wide('one__hold'), wide('one__hold'))
  await arrived(desk, 3)
  desk.release()
  await arrived(desk, 1)
  desk.release()
  expect(await Promise.all(calls)).toEqual(['held', 'held', 'held', 'held'])
})

test('B7: limits.concurrency holds for all servers together, and limits.queue for those who wait', async () => {
  await using here = await crowded(({ url }, other) => ({
    mcpServers: { one: { url }, two: { url: other.url } },
    limits: { concurrency: 1, queue: 1 },
  }))
  const { toolway, desk, other } = here
  const call = await caller(toolway)
  const first = call('one__hold')
  await arrived(desk, 1)
  const second = call('two__hold')
  await queued(toolway, 1)
  expect(await call('two__hold')).toBe('OVERLOADED')
  expect(other.held).toBe(0)
  desk.release()
  await arrived(other, 1)
  other.release()
  expect(await Promise.all([first, second])).toEqual(['held', 'held'])
})

test('G8, B7: a call that waits gets its place as soon as the limit is raised', async () => {
  const limited = ({ url }: Desk, concurrency: number) => ({ mcpServers: { one: { url } }, limits: { concurrency } })
  await using here = await crowded((desk) => limited(desk, 1))
  const { toolway, desk } = here
  const call = await caller(toolway)
  const calls = [call('one__hold'), call('one__hold')]
  await queued(toolway, 1)
  await toolway.rewrite(limited(desk, 2))
  expect(await toolway.gateway.reload()).toMatchObject({ successes: 1 })
  await arrived(desk, 2)
  desk.release()
  expect(await Promise.all(calls)).toEqual(['held', 'held'])
})
