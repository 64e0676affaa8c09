import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { type ClientKind, clientKinds, clientLabels } from '../../config/import/client-kind.ts'
import { translate } from '../../config/import/translate.ts'
import { parseDocument } from '../../config/parse/document.ts'
import { find, toPlain } from '../../config/tree.ts'
import { toolway } from '../kit.fixture.ts'

const page = await readFile(new URL('../../../docs/clients.md', import.meta.url), 'utf8')
const sections = new Map(
  page.split(/^### /m).map((section) => [section.slice(0, section.indexOf('\n')), section] as const),
)

test.each(clientKinds)(
  'B11: docs/clients.md shows how to connect %s by command and by hand',
  async (client: ClientKind) => {
    const section = sections.get(clientLabels[client]) ?? ''
    expect(section.replace(/\s+/g, ' ')).toContain(`toolway connect ${client}`)
    const [, syntax = '', text = ''] = /```(\w+)\n(.*?)```/s.exec(section) ?? []
    if (client === 'claude-code') {
      expect(text).toContain('claude mcp add --transport http toolway http://127.0.0.1:4322/mcp')
      return
    }
    // Under our own name it would be left out.
    const source = { path: `settings.${syntax}`, text: text.replace(/toolway(?=["\]])/, 'us') }
    const { tree, problems } = await parseDocument(source)
    const read = translate(tree, '', client)
    expect([...problems, ...read.problems, ...read.warnings]).toEqual([])
    const server = find(read.tree, ['mcpServers', 'us'])
    expect(server && toPlain(server)).toMatchObject(
      syntax === 'toml' || text.includes('http://')
        ? { url: 'http://127.0.0.1:4322/mcp' }
        : { command: 'COMMAND', args: ['MAIN', 'stdio', '--config', '/path/to/toolway.yaml'] },
    )
  },
)

test('B11: every option that docs/clients.md names is one of its commands', async () => {
  const commands = ['init', 'import', 'add', 'remove', 'connect']
  const help = await Promise.all(commands.map((command) => toolway([command, '--help'])))
  const known = help.map(({ stdout }) => stdout).join('\n')
  const named = new Set(
    [...page.replace(/^(?:claude|npx) .*$/gm, '').matchAll(/(?<![\w-])--[a-z][a-z-]+/g)].map(([option]) => option),
  )
  expect(named.size).toBeGreaterThan(10)
  for (const option of named) expect(known, option).toContain(option)
})
