import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { configSchema } from '../config/schema.ts'
import { systemClock } from '../core/clock.ts'
import { silentLog } from '../core/log.ts'
import { openExecutor } from './engines.ts'

test('S7: the first run in an environment that was lost with changed settings says so', async () => {
  const open = (memory: string, before?: ReturnType<typeof openExecutor>) =>
    openExecutor(configSchema.parse({ sandbox: { memory } }).sandbox, { clock: systemClock, log: silentLog }, before)
  const run = (executor: ReturnType<typeof openExecutor>, code: string, environment?: string) =>
    executor.run({
      ...{ code, environment, language: 'javascript', owner: 'somebody', timeoutMs: 10_000 },
      signal: new AbortController().signal,
      host: async () => '{}',
    })
  await using before = open('64MiB')
  expect(await run(before, 'let kept = 1', 'a')).toMatchObject({ status: 'ok', reset: undefined })
  await using between = open('48MiB', before)
  await using after = open('32MiB', between)
  expect(await run(after, 'typeof kept', 'a')).toMatchObject({ value: '"undefined"', reset: expect.any(String) })
  expect(await run(after, 'typeof kept', 'a')).toMatchObject({ reset: undefined })
  expect(await run(after, '1', 'b')).toMatchObject({ reset: undefined })
  expect(await run(after, '1')).toMatchObject({ reset: undefined })
})

test('S7: programs can reach only the hosts in allowNetwork', async () => {
  const server = createServer((request, response) => response.end(`hello ${request.url}`))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const { sandbox } = configSchema.parse({ sandbox: { allowNetwork: ['127.0.0.1'] } })
  await using executor = openExecutor(sandbox, { clock: systemClock, log: silentLog })
  const run = (host: string) =>
    executor.run({
      code: `const answer = await fetch('http://${host}:${port}/there'); await answer.text()`,
      language: 'javascript',
      owner: 'somebody',
      timeoutMs: 10_000,
      signal: new AbortController().signal,
      host: async () => '{}',
    })
  expect(await run('127.0.0.1')).toMatchObject({ status: 'ok', value: '"hello /there"' })
  expect(await run('localhost')).toMatchObject({ status: 'error', error: { code: 'UNSAFE_URL' } })
})
