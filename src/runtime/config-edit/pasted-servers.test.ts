import { describe, expect, test } from 'vitest'
import { readPasted, wordsOf } from './pasted-servers.ts'

const read = async (input: string, name?: string) => {
  const found = await readPasted(
    { input, name },
    { env: { HOME: '/home/me' }, cwd: '/home/me/project' },
    '/home/me/project/toolway.yaml',
  )
  return Object.fromEntries(found.map((server) => [server.name, server.definition]))
}

describe('V9: servers are read from whatever somebody pastes', () => {
  test.each([
    ['npx -y @modelcontextprotocol/server-filesystem@1.2 "/my files"', 'filesystem'],
    ['API_KEY=x uvx mcp-server-git', 'git'],
    ['docker run -i --rm mcp/time:latest', 'time'],
    ['https://mcp.example.com/mcp', 'example'],
    ['{"mcpServers": {"a": {"command": "x"}}}', 'a'],
    ['{"servers": {"a": {"type": "http", "url": "https://x.test/mcp"}}}', 'a'],
    ['{"mcp": {"a": {"type": "local", "command": ["x"]}}}', 'a'],
    ['{"context_servers": {"a": {"command": "x"}}}', 'a'],
    ['{"command": "node", "args": ["weather.js"]}', 'weather'],
    ['"a": {"command": "x"},', 'a'],
    ['{"a": {"command": "x"}}', 'a'],
    ['[mcp_servers.a]\ncommand = "x"\n', 'a'],
    ['mcpServers:\n  a:\n    command: x\n', 'a'],
  ])('%s', async (input, name) => {
    expect(Object.keys(await read(input))).toEqual([name])
  })

  test('a command line with quotes and variables', async () => {
    expect(await read('A=1 B="2 3" node \'my server.js\' --x="y z"', 'mine')).toEqual({
      mine: { command: 'node', args: ['my server.js', '--x=y z'], env: { A: '1', B: '2 3' } },
    })
    expect(wordsOf('a\\ b "c\\"d" \'\'')).toEqual(['a b', 'c"d', ''])
  })

  test.each(['', 'A=1', '"', '{"a": 1}', '{"mcpServers": {}}', '{'])('%s is refused', async (input) => {
    await expect(read(input)).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })

  test('an invalid name is refused', async () => {
    await expect(read('node x.js', 'a b')).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  })
})
