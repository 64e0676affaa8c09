import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { startToolway } from '../../fixtures/toolway.ts'

test('V6: server.maxValues holds over HTTP and over stdio', async () => {
  await using toolway = await startToolway({ server: { maxValues: 50 } })
  const ping = (values: number) =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: { 'a/b': Array(values).fill(1) } } })
  const status = async (body: string) => {
    const headers = { authorization: `Bearer ${toolway.token}`, 'content-type': 'application/json', accept: '*/*' }
    const response = await fetch(toolway.url, { method: 'POST', headers, body })
    await response.arrayBuffer()
    return response.status
  }
  expect([await status(ping(100)), (await status(ping(10))) === 413]).toEqual([413, false])

  const [input, output] = [new PassThrough(), new PassThrough()]
  const served = toolway.gateway.stdio(input, output)
  input.end(`${ping(100)}\n${ping(10)}\n`)
  await served
  const answers = String(output.read()).trim().split('\n')
  expect(answers.map((line) => JSON.parse(line).error?.code)).toEqual([-32600, undefined])
})
