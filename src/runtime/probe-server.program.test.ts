import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { configSchema, type ServerConfig } from '../config/schema.ts'
import { systemClock } from '../core/clock.ts'
import { silentLog } from '../core/log.ts'
import { createServerProber } from './probe-server.ts'

/** A server that exits at once: its first process writes `first` to stderr, the next one `second`. */
function exitingServer(folder: string, first: readonly string[], second: readonly string[]): ServerConfig {
  const marker = join(folder, 'started')
  const script = `
    const fs = require('node:fs')
    const isSecond = fs.existsSync(${JSON.stringify(marker)})
    fs.writeFileSync(${JSON.stringify(marker)}, '')
    for (const line of isSecond ? ${JSON.stringify(second)} : ${JSON.stringify(first)}) console.error(line)
    process.exitCode = 3`
  const { mcpServers } = configSchema.parse({
    mcpServers: { files: { command: process.execPath, args: ['-e', script] } },
  })
  return mcpServers.files as ServerConfig
}

const many = Array.from({ length: 300 }, (_, at) => `line ${at}`)

test.each([
  ['one line', 'nothing', ['TOKEN is required'], []],
  ['more lines than are kept', 'nothing', many, []],
  ['one line', 'another one', ['TOKEN is required'], ['no such folder']],
  ['more lines than are kept', 'another one', many, ['no such folder']],
])('B11: the first process wrote %s and the last one %s: only that explains its end', async (_, __, first, second) => {
  await using prober = createServerProber({ redact: (text) => text, clock: systemClock, log: silentLog })
  await using folder = await temporaryFolder()
  const server = exitingServer(folder.path, first, second)
  const { failure, stderr } = await prober.probe('files', server, 60_000, new AbortController().signal)
  expect(failure?.message).toContain('exit code 3')
  expect(stderr).toEqual(second)
})

test('B11, V6: a list that exceeds a limit is a finding, and the other lists are counted', async () => {
  const script = `
    const deep = '{"prompts":[{"name":"p","_meta":{"a":' + '['.repeat(300) + ']'.repeat(300) + '}}]}'
    const results = {
      initialize: '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"x","version":"1"}}',
      'tools/list': '{"tools":[{"name":"get","inputSchema":{"type":"object"}}]}',
      'prompts/list': deep,
    }
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      const answer = results[method] ? '"result":' + results[method] : '"error":{"code":-32601,"message":"unknown"}'
      if (id !== undefined) console.log('{"jsonrpc":"2.0","id":' + id + ',' + answer + '}')
    })`
  const { mcpServers } = configSchema.parse({ mcpServers: { x: { command: process.execPath, args: ['-e', script] } } })
  await using prober = createServerProber({ redact: (text) => text, clock: systemClock, log: silentLog })
  const server = mcpServers.x as ServerConfig
  const { failure, findings } = await prober.probe('x', server, 60_000, new AbortController().signal)
  expect(failure).toBeUndefined()
  expect(findings).toMatchObject([{ kind: 'deep-nesting', method: 'prompts/list' }])
})
