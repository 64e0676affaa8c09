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

describe('V9: servers are read from pasted text', () => {
  test.each([
    ['npx -y @modelcontextprotocol/server-filesystem@1.2 "/my files"', 'filesystem'],
    ['API_KEY=x uvx mcp-server-git', 'git'],
    ['docker run -i --rm mcp/time:latest', 'time'],
    ['docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server stdio', 'github'],
    ['docker run -itv /srv:/data --name box --network=host --unknown 1 mcp/x@sha256:0a1b -e y', 'x'],
    ['https://mcp.example.com/mcp', 'example'],
    ['```json\n{"mcpServers": {"a": {"command": "x"}}}\n```', 'a'],
    ['```sh\n# start it\nnpx -y weather-mcp\n```', 'weather'],
    ['`npx -y weather-mcp`', 'weather'],
    ['// mcp.json\n/* of\nmine */ {"mcpServers": {"a": {"command": "x"}}}', 'a'],
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

  test.each([
    ['docker run -i --rm -e API_KEY=sk-proj-abcdefghijklmnop123456 mcp/x', 'x'],
    ['podman run -e TOKEN=hunter2 mcp/x', 'x'],
    ['podman run --env PASSWORD=hunter2', 'podman'],
    ['docker run --token hunter2', 'docker'],
    ['bash -c "TOKEN=hunter2 node x.js"', 'bash'],
    ['uv run --api-key hunter2 weather', 'weather'],
    ['node a8F3kd93kDk29dkW0', 'node'],
    ['{"command": "TOKEN=hunter2 node"}', 'server'],
  ])('B11: a secret never becomes the name of a server: %s', async (input, name) => {
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
