import { expect, test } from 'vitest'
import { callOf } from '../../core/call.fixture.ts'
import type { Source } from '../../core/source.ts'
import { serverWith } from '../server.fixture.ts'

const callerOf = (session: string, agent = 'default') => ({ ...callOf().caller, session, agent })
const namesOf = (source: Source) => source.entries().map(({ name }) => name)
const told = { method: 'notifications/tools/list_changed' }

/** A server with a connection for each session. Each connection has its own tools. */
function setUp(changes: object = { session: 'caller', spares: 0 }) {
  const tools: string[][] = []
  const toolsOf = (connection: number) => {
    tools[connection] ??= ['read']
    return tools[connection]
  }
  const set = serverWith({ tools: toolsOf, changes })
  const { server, clock, peers } = set
  const heard: string[] = []
  server.onCallerChange(({ session }) => heard.push(session))
  return {
    ...set,
    heard,
    tools,
    seen: (...of: Parameters<typeof callerOf>) => namesOf(server.seenBy({}, callerOf(...of))),
    common: () => namesOf(server.seenBy({})),
    /** Makes a call in the session, and returns the number of the connection that served it. */
    async call(...of: Parameters<typeof callerOf>) {
      await server.ready()
      const [entry] = server.entries()
      if (!entry) throw new Error('no entry')
      const before = peers.map((peer) => peer.heard.length)
      await entry.run(callOf({ entry, caller: callerOf(...of) }))
      return peers.findIndex((peer, at) => peer.heard.slice(before[at]).some(({ method }) => method === 'tools/call'))
    },
    /** Adds a tool on one connection, and announces it there. */
    async add(connection: number, tool: string) {
      tools[connection]?.push(tool)
      peers[connection]?.say(told)
      await clock.pass(0)
    },
  }
}

test('W1: a tool that a server adds for one agent of a session is not listed for another agent of it', async () => {
  const { call, add, seen } = setUp()
  const own = await call('one', 'alice')
  await call('one', 'bob')
  await add(own, 'enabled')
  expect(seen('one', 'alice')).toEqual(['read', 'enabled'])
  expect(seen('one', 'bob')).toEqual(['read'])
})

test('G3: a tool that a server adds for one session is listed for that session only', async () => {
  const { call, add, seen, common, server, store, heard } = setUp()
  const own = await call('alice')
  await call('bob')
  await add(own, 'enabled')
  expect(seen('alice')).toEqual(['read', 'enabled'])
  expect(seen('bob')).toEqual(['read'])
  expect(common()).toEqual(['read'])
  expect(server.hasListsFor(callerOf('alice'))).toBe(true)
  expect(server.hasListsFor(callerOf('bob'))).toBe(false)
  expect(heard).toEqual(['alice'])
  // Nothing of it is stored: the next start does not know it.
  const later = serverWith({ store, down: () => true })
  await later.server.start()
  expect(later.names()).toEqual(['read'])
})

test('G3: sessions of one connection see what it lists', async () => {
  const { call, add, seen } = setUp({ session: 'shared' })
  await call('alice')
  await add(await call('bob'), 'enabled')
  expect([seen('alice'), seen('bob')]).toEqual([
    ['read', 'enabled'],
    ['read', 'enabled'],
  ])
})

test('G3: the lists of a session end with its connection', async () => {
  const { call, add, seen, server, clock, heard } = setUp()
  await add(await call('alice'), 'enabled')
  server.sessionEnded(callerOf('alice'))
  await clock.pass(0)
  expect(seen('alice')).toEqual(['read'])
  expect(heard).toEqual(['alice', 'alice'])
  await server[Symbol.asyncDispose]()
  expect(clock.pending).toBe(0)
})

test('G3: a session that sees what others see again has no lists of its own', async () => {
  const { call, add, seen, tools, peers, server, clock } = setUp()
  const own = await call('alice')
  await add(own, 'enabled')
  tools[own]?.pop()
  peers[own]?.say(told)
  await clock.pass(0)
  expect(seen('alice')).toEqual(['read'])
  expect(server.hasListsFor(callerOf('alice'))).toBe(false)
})

test('G3: a change that is announced while the lists are fetched is not missed', async () => {
  const { call, add, seen, peers, tools, clock } = setUp()
  const own = await call('alice')
  peers[own]?.say(told)
  tools[own] = ['read', 'enabled']
  peers[own]?.say(told)
  await clock.pass(0)
  expect(seen('alice')).toEqual(['read', 'enabled'])
  await add(own, 'more')
  expect(seen('alice')).toEqual(['read', 'enabled', 'more'])
})

test('F4, G3: a tool that a server adds for all is listed for all, and no session has lists of its own', async () => {
  const { call, add, seen, common, tools, server, clock } = setUp()
  const own = await call('alice')
  const another = await call('bob')
  // Every connection that opens from now on lists the new tool.
  tools.push(['read', 'enabled'])
  await Promise.all([add(own, 'enabled'), add(another, 'enabled')])
  await clock.pass(0)
  expect([seen('alice'), seen('bob'), common()]).toEqual(Array(3).fill(['read', 'enabled']))
  expect([server.hasListsFor(callerOf('alice')), server.hasListsFor(callerOf('bob'))]).toEqual([false, false])
})

test('F4: what a server adds without announcing it is found every minute, also on a connection of one session', async () => {
  const { call, tools, seen, clock } = setUp()
  const own = await call('alice')
  tools[own]?.push('enabled')
  await clock.pass(60_000)
  expect(seen('alice')).toEqual(['read', 'enabled'])
  tools[own]?.push('another')
  await clock.pass(60_000)
  expect(seen('alice')).toEqual(['read', 'enabled', 'another'])
})

test('B2: a connection that has not served a call yet shows what all sessions see', async () => {
  const { server, add, common } = setUp()
  await server.ready()
  await add(0, 'late')
  expect(common()).toEqual(['read', 'late'])
})

test('G3, F4: a tool that is added during a call, on a connection for that call only, is not listed', async () => {
  const tools = [['read']]
  const { server, names, clock } = serverWith({
    tools: (connection) => tools[connection] ?? ['read'],
    changes: { session: 'call', spares: 0 },
    called(peer) {
      tools[0] = ['read', 'enabled']
      peer.say(told)
    },
  })
  await server.ready()
  const [entry] = server.entries()
  if (!entry) throw new Error('no entry')
  await entry.run(callOf({ entry }))
  await server.ready()
  await clock.pass(0)
  expect(names()).toEqual(['read'])
})

test('security: the lists of sessions are bounded in bytes; those with the largest lists see the common ones', async () => {
  const { call, add, tools, server } = setUp()
  const sessions = ['12', '14', '13', '12', '11', '0.001', '12'].map((size, at) => ({
    size: Number(size),
    name: `${at}`,
  }))
  for (const { name, size } of sessions) {
    const own = await call(name)
    const page = 'x'.repeat(size * 1024 * 10)
    tools[own] = Array.from({ length: 100 }, (_, at) => `${at}${page}`)
    await add(own, 'enabled')
  }
  const own = sessions.filter(({ name }) => server.hasListsFor(callerOf(name)))
  expect(own.map(({ size }) => size)).toEqual([12, 13, 12, 11, 0.001, 12])
})

test('security: one caller has a bounded number of sessions with lists of their own', async () => {
  const http = { command: undefined, url: 'http://127.0.0.1:1/mcp' }
  const { call, add, server } = setUp({ ...http, session: 'caller', spares: 0 })
  const sessions = Array.from({ length: 70 }, (_, at) => `s${at}`)
  for (const session of sessions) await add(await call(session), 'enabled')
  const own = sessions.filter((session) => server.hasListsFor(callerOf(session)))
  expect(own).toEqual(sessions.slice(-64))
})
