import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, type Program } from '../../fixtures/clients.ts'
import { type Commands, startCommands } from '../../fixtures/commands/commands.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { compiled } from '../../fixtures/programs.ts'
import { stdioServers } from '../../fixtures/servers.ts'

let commands: Commands
let folder: Folder
let home: string
let shop: string

const secret = 'ghp_0123456789abcdefghijABCDEFGHIJ012345'
const desktop = '.config/Claude/claude_desktop_config.json'

const everything = () => JSON.stringify(stdioServers.everything())
const memory = () => {
  const { env, ...entry } = stdioServers.memory(join(shop, 'memory.json'))
  return JSON.stringify({ ...entry, env: { ...(env as object), GITHUB_TOKEN: secret } })
}

/** Files as three clients have them: with tabs, with a byte order mark and Windows' line ends, and without servers. */
const originals = (): Record<string, string> => ({
  [desktop]: `{\n\t"mcpServers": {\n\t\t"everything": ${everything()}\n\t},\n\t"scale": 1\n}`,
  '.cursor/mcp.json': [
    '\ufeff{',
    "  // Cursor's",
    '  "mcpServers": {',
    `    "everything": ${everything()},`,
    `    "memory": ${memory()},`,
    '  }',
    '}',
    '',
  ].join('\r\n'),
  '.codex/config.toml': '# Codex\nmodel = "x"\n',
})

beforeAll(async () => {
  commands = startCommands()
  folder = await temporaryFolder()
  home = join(folder.path, 'home')
  shop = join(folder.path, 'shop')
  await mkdir(shop)
  for (const [name, content] of Object.entries(originals())) {
    await mkdir(dirname(join(home, name)), { recursive: true })
    await writeFile(join(home, name), content)
  }
})

afterAll(async () => {
  await commands[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const environment = () => ({ PATH: process.env.PATH as string, HOME: home, ...compiled })

async function toolway(...words: string[]) {
  const { code, printed } = await commands.run({ words, cwd: shop, env: environment() })
  const all = (stream: 'stdout' | 'stderr') =>
    printed
      .filter(({ to }) => to === stream)
      .map(({ text }) => text)
      .join('')
  return { code, stdout: all('stdout'), stderr: all('stderr') }
}

test('B11: servers of two editors run through Toolway after init and connect, and undo restores the editors', async () => {
  const init = await toolway('init', '--json')
  expect(init).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(init.stdout)).toMatchObject({
    servers: [
      { name: 'everything', from: ['claude-desktop', 'cursor'] },
      { name: 'memory', from: ['cursor'] },
    ],
    secrets: 1,
  })
  expect(await readFile(join(shop, 'toolway.yaml'), 'utf8')).not.toContain(secret)

  expect((await toolway('validate')).code).toBe(0)
  const tools = await toolway('tools', '--json', '--wait', '30s')
  const names = JSON.parse(tools.stdout).tools.map(({ name }: { name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['everything__echo', 'memory__read_graph']))

  for (const client of ['cursor', 'claude-desktop', 'codex']) {
    expect(await toolway('connect', client, '--replace', '--yes')).toMatchObject({ code: 0 })
  }
  const { mcpServers } = JSON.parse(await readFile(join(home, desktop), 'utf8'))
  expect(Object.keys(mcpServers)).toEqual(['toolway'])

  // What stands in the client's file really starts Toolway, from a folder and with an environment of the client's.
  const program: Program = { ...mcpServers.toolway, env: environment(), cwd: folder.path }
  {
    await using client = await connect('v1', { program })
    expect(JSON.stringify(await client.callTool('everything__echo', { message: 'through Toolway' }))).toContain(
      'through Toolway',
    )
  }

  for (const client of ['cursor', 'claude-desktop', 'codex']) {
    expect(await toolway('connect', client, '--undo')).toMatchObject({ code: 0 })
  }
  for (const [name, content] of Object.entries(originals())) {
    expect(await readFile(join(home, name), 'utf8'), name).toBe(content)
  }
})

test('B11: a file of another program is a configuration as it stands', async () => {
  const { code, stdout } = await toolway(
    'tools',
    '--config',
    join(home, '.cursor', 'mcp.json'),
    '--json',
    '--wait',
    '30s',
  )
  expect(code).toBe(0)
  expect(stdout).toContain('everything__echo')
})
