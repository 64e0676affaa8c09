import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { serverProgram } from '../../../tests/fixtures/programs.ts'
import { json, result, type Script, stream } from '../../../tests/fixtures/rogue-http.ts'
import { serving } from './http.fixture.ts'
import { gone, rogue } from './stdio.fixture.ts'

const transports = JSON.stringify(pathToFileURL(serverProgram('transports')).href)

/**
 * The source of a small gateway: it opens a transport with `make`, sends one request, and runs `then` when the response
 * arrives.
 */
const program = (make: string, params: object, then: string) => `
  import { HttpTransport, SseTransport, StdioTransport, systemClock as clock, silentLog as log } from ${transports}
  const common = { name: 'rogue', clock, log, headers: {}, env: {} }
  const line = ${make}
  const message = async (body) => {
    console.log(line.pid, JSON.parse(body).result.content[0].text)
    ${then}
  }
  await line.open({ message, failed: console.log, closed: console.log }, new AbortController().signal)
  line.established('2025-11-25')
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: ${JSON.stringify(params)} }
  await line.send({ body: Buffer.from(JSON.stringify(body)), exchange: 1 })
`

const run = async (code: string): Promise<{ said: string; exit: number }> => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [[said], [exit]] = await Promise.all([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit'),
  ])
  return { said, exit }
}

const stdio = `new StdioTransport({ ...common, command: process.execPath, args: [${JSON.stringify(rogue)}] })`
const dispose = 'await line[Symbol.asyncDispose]()'

test.each([
  ['process.exit(3)', 3],
  ['throw new Error("unexpected")', 1],
])('security: no child or grandchild outlives us when we leave with %s', async (leave, code) => {
  const { said, exit } = await run(program(stdio, { name: 'grandchild' }, leave))
  expect(exit).toBe(code)
  const [child, grandchild] = said.split(' ').map(Number) as [number, number]
  await Promise.all([gone(child), gone(grandchild)])
})

test('security: nothing keeps the process alive once a stdio transport has been disposed of', async () => {
  expect(await run(program(stdio, { name: 'echo', arguments: { text: 'bye' } }, dispose))).toMatchObject({ exit: 0 })
})

const answer = (id: unknown) => result(id, { content: [{ type: 'text', text: 'bye' }] })

test('security: nothing keeps the process alive once an HTTP transport with open streams has been disposed of', async () => {
  const server = await serving((got, response) => {
    if (got.method === 'GET') stream(response)
    else if (got.method === 'DELETE') response.writeHead(200).end()
    else stream(response, { 'mcp-session-id': 'x' }).write(`data: ${answer(got.message?.id)}\n\n`)
  })
  expect(await run(program(`new HttpTransport({ ...common, url: '${server.url}' })`, {}, dispose))).toMatchObject({
    exit: 0,
  })
})

test('security: nothing keeps the process alive once an SSE transport has been disposed of', async () => {
  let events: ReturnType<typeof stream>
  const script: Script = (got, response) => {
    if (got.method === 'GET') {
      events = stream(response)
      events.write('event: endpoint\ndata: /message\n\n')
    } else {
      json(response, '{}', 202)
      events.write(`data: ${answer(got.message?.id)}\n\n`)
    }
  }
  const server = await serving(script)
  expect(await run(program(`new SseTransport({ ...common, url: '${server.url}' })`, {}, dispose))).toMatchObject({
    exit: 0,
  })
})
