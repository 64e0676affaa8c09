import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import { twoServers } from '../everything.fixture.ts'
import { folder } from '../folder.fixture.ts'
import { toolway } from '../kit.fixture.ts'

const sha256OfHello = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'

describe('B11: call, with no configuration at all', () => {
  let place: Awaited<ReturnType<typeof folder>>
  beforeAll(async () => {
    place = await folder({ 'data.json': { data: 'hello', algorithm: 'sha256' } })
  })
  afterAll(() => place[Symbol.asyncDispose]())

  test('runs a native tool and prints its result', async () => {
    const { code, stdout, stderr } = await toolway(['call', 'native.hash', 'data=hello', 'algorithm=sha256'], place)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(sha256OfHello)
  })

  test('takes arguments from a file and from stdin, and prints the whole result with --json', async () => {
    const file = await toolway(['call', 'native.hash', '--args', '@data.json', '--json'], place)
    expect(JSON.parse(file.stdout)).toMatchObject({ content: [{ type: 'text' }] })
    expect(file.stdout).toContain(sha256OfHello)
    const input = '{"data":"overridden","algorithm":"sha256"}'
    const stdin = await toolway(['call', 'native.hash', 'data=hello', '--args', '-'], { ...place, input })
    expect(stdin.stdout).toContain(sha256OfHello)
  })

  test('F3: finds the tool by any spelling, and names near misses', async () => {
    const { stdout } = await toolway(['call', 'native::hash', 'data=hello', 'algorithm=sha256'], place)
    expect(stdout).toContain(sha256OfHello)
    const wrong = await toolway(['call', 'hsh', 'data=hello'], place)
    expect(wrong).toMatchObject({ code: 2, stdout: '' })
    expect(wrong.stderr).toMatch(/^error TOOL_NOT_FOUND: .*Did you mean "hash"/)
  })

  test('T1: an unknown server is another error, in JSON too', async () => {
    const { code, stdout, stderr } = await toolway(['call', 'nowhere.tool', '--json'], place)
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'SERVER_NOT_FOUND' } })
  })

  test('an interrupted call exits with 130 and prints nothing', async () => {
    const interrupted = AbortSignal.abort(new ToolwayError('CANCELLED', 'Interrupted.'))
    const outcome = await toolway(['call', 'native.hash', 'data=hello'], { ...place, interrupted })
    expect(outcome).toEqual({ code: 130, stdout: '', stderr: '' })
  })
})

describe('B11: call, with a real server', () => {
  let place: Awaited<ReturnType<typeof folder>>
  beforeAll(async () => {
    place = await folder({ 'toolway.json': twoServers })
  })
  afterAll(() => place[Symbol.asyncDispose]())

  test('F1: types arguments by the schema of the server', async () => {
    const { code, stdout } = await toolway(['call', 'everything.get-sum', 'a=2', 'b=40'], place)
    expect(code).toBe(0)
    expect(stdout).toContain('42')
  })

  test('V5: prints the numbers of a structured result exactly', async () => {
    const program = `require('node:readline').createInterface(process.stdin).on('line', (line) => {
      const { id, method, params } = JSON.parse(line)
      const result = {
        initialize: JSON.stringify({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'n', version: '1' } }),
        'tools/list': '{"tools":[{"name":"id","inputSchema":{"type":"object"}}]}',
        'tools/call': '{"content":[],"structuredContent":{"id":1326954198812345679}}',
      }[method] ?? '{}'
      if (id !== undefined) console.log('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + result + '}')
    })`
    const numbers = { command: process.execPath, args: ['-e', program] }
    await using at = await folder({ 'toolway.json': { mcpServers: { numbers } } })
    const { stdout } = await toolway(['call', 'numbers.id'], at)
    expect(stdout).toContain('1326954198812345679')
  })

  test('shows an image as a note and writes it where --out says', async () => {
    const { code, stdout, stderr } = await toolway(['call', 'everything.get-tiny-image', '--out', 'tiny.png'], place)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\[image\/png, [\d.]+ (KB|bytes)\]$/m)
    expect(stderr).toMatch(/^Wrote tiny\.png/)
    expect((await readFile(join(place.cwd, 'tiny.png'))).subarray(1, 4).toString()).toBe('PNG')
  })

  test('a tool error exits with 1 and goes to stderr', async () => {
    const { code, stdout, stderr } = await toolway(
      ['call', 'everything.get-resource-reference', 'resourceId:=-5'],
      place,
    )
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).not.toBe('')
  })

  test('F9: arguments that do not fit the schema are refused before anything is sent, and end with 2', async () => {
    const { code, stderr } = await toolway(['call', 'everything.get-sum', 'a:="x"', 'b=1'], place)
    expect(code).toBe(2)
    expect(stderr).toContain('INVALID_ARGUMENTS')
  })

  test('a server that cannot be reached ends with 3', async () => {
    const { code, stdout, stderr } = await toolway(['call', 'broken.tool'], place)
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toMatch(/^error SERVER_UN(AVAILABLE|HEALTHY): .*broken/)
  })
})
