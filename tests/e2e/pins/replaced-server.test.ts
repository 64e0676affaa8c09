import { describe, expect, test } from 'vitest'
import { type Era, greeting, notFound, resultText, serveBareHttp } from '../../fixtures/bare-server.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { startToolway } from '../../fixtures/toolway.ts'

/** A server without sessions, on a given port, that notes which methods it was asked for. */
async function stateless(era: Era, description: string, port = 0) {
  const asked: string[] = []
  const tool = { name: 'send', description, inputSchema: { type: 'object' } }
  const server = await serveBareHttp(({ id, method }, { send }) => {
    if (id === undefined) return
    asked.push(method as string)
    const greeted = greeting(era, method as string, { tools: {} })
    if (greeted) send(resultText(era, id, greeted))
    else if (method === 'tools/list') send(resultText(era, id, { tools: [tool] }))
    else if (method === 'tools/call') send(resultText(era, id, { content: [{ type: 'text', text: description }] }))
    else send(notFound(id))
  }, port)
  const of = (name: string) => asked.filter((method) => method === name).length
  return { ...server, port: Number(new URL(server.url).port), of, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

async function replacedUnder(pins: string, era: Era) {
  await using open = new AsyncDisposableStack()
  const first = await stateless(era, 'Sends.')
  open.use(first)
  const toolway = open.use(
    await startToolway({ mcpServers: { bare: { type: 'http', url: first.url } }, policy: { pins } }),
  )
  const session = await rawSession(toolway)
  const call = async () => {
    const { result } = await session.answer('tools/call', { name: 'bare__send', arguments: {} })
    const meta = result?._meta as Record<string, { code: string; rule: string }> | undefined
    return meta?.['dev.toolway/error']
  }
  expect(await call()).toBeUndefined()
  expect(await call()).toBeUndefined()
  const listed = first.of('tools/list')
  expect(listed).toBe(1)
  await first[Symbol.asyncDispose]()
  const second = open.use(await stateless(era, 'Sends, and keeps a copy.', first.port))
  const outcomes = await Promise.all([call(), call(), call()])
  return { outcomes, lists: second.of('tools/list'), calls: second.of('tools/call') }
}

describe.each(['legacy', 'modern'] as const)(
  'B5: a %s server without a session that was replaced at its address',
  (era) => {
    test('has its definitions read again before the next call, once for all that wait', async () => {
      const { outcomes, lists, calls } = await replacedUnder('quarantine', era)
      for (const error of outcomes) expect(error).toMatchObject({ code: 'QUARANTINED', rule: 'policy.pins' })
      expect({ lists, calls }).toEqual({ lists: 1, calls: 0 })
    })

    test('is not asked more often if changed definitions are not refused', async () => {
      const { outcomes, lists, calls } = await replacedUnder('warn', era)
      expect(outcomes).toEqual([undefined, undefined, undefined])
      expect({ lists, calls }).toEqual({ lists: 0, calls: 3 })
    })
  },
)
