import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { until } from '../../../tests/fixtures/until.ts'
import { createRedactor } from '../../audit/redact/redactor.ts'
import { loadConfig } from '../../config/load.ts'
import type { Caller } from '../../core/call.ts'
import type { AdminContext } from '../context.ts'
import { ConfigEdits, createConfigEditAdmin } from './config-edit.ts'

test('V9: the definition of a server says why it cannot be edited', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'toolway-definition-'))
  const path = join(folder.path, 'toolway.yaml')
  const text = `mcpServers:
  plain: &base { command: node, env: { A: b } }
  merged: { <<: *base, args: [x] }
  partly: { command: node, env: { <<: { A: b } } }
`
  await writeFile(path, text)
  const source = { paths: [path], env: { HOME: folder.path }, cwd: folder.path }
  const loaded = await loadConfig(source)
  const redactor = createRedactor({ secrets: [], keys: [] })
  const context = { current: () => ({ loaded, redactor, secrets: [] }), source, auditKey: async () => 'k' }
  const edits = new ConfigEdits(context as unknown as AdminContext)
  const admin = createConfigEditAdmin(context as unknown as AdminContext, edits)
  const definitionOf = (name: string) => admin.serverDefinition(name)
  expect(await definitionOf('plain')).toMatchObject({ editable: { ok: true }, definition: { command: 'node' } })
  for (const name of ['merged', 'partly']) {
    expect(await definitionOf(name)).toMatchObject({
      target: name === 'merged' ? 'node x' : 'node',
      editable: { ok: false, reason: expect.stringContaining('<<') },
      definition: null,
    })
  }
  await writeFile(path, text.replace('[x] }', '[x'))
  expect(await definitionOf('plain')).toMatchObject({
    target: 'node',
    editable: { ok: false, reason: expect.stringContaining('syntax error') },
    definition: null,
  })
})

test('V9: the command of a server is shown with quotes that a shell understands', async () => {
  const loaded = { config: { mcpServers: { it: { command: 'sh', args: ['-c', 'echo "$HOME"'] } } } }
  const redactor = createRedactor({ secrets: [], keys: [] })
  const context = { current: () => ({ loaded, redactor, secrets: [] }), auditKey: async () => 'k' }
  const edits = new ConfigEdits(context as unknown as AdminContext)
  const admin = createConfigEditAdmin(context as unknown as AdminContext, edits)
  expect((await admin.serverDefinition('it')).target).toBe(`sh -c 'echo "$HOME"'`)
})

test('V9: an edit of a file that is already invalid says so', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'toolway-invalid-'))
  const path = join(folder.path, 'toolway.yaml')
  const source = { paths: [path], env: { HOME: folder.path }, cwd: folder.path }
  await writeFile(path, 'mcpServers: {}\n')
  const loaded = await loadConfig(source)
  await writeFile(path, 'mcpServers: {}\nnonsense: 1\n')
  const redactor = createRedactor({ secrets: [], keys: [] })
  const current = () => ({ loaded, redactor, secrets: [] })
  const context = { current, source, auditKey: async () => 'k', clock: createManualClock() }
  const edits = new ConfigEdits(context as unknown as AdminContext)
  const admin = createConfigEditAdmin(context as unknown as AdminContext, edits)
  const edit = { changes: [{ path: ['mcpServers', 'files'], value: { command: 'node' } }] }
  await expect(edits.loadedWith(edit)).rejects.toThrow(/file is invalid without this edit/)
  await expect(admin.testServers({} as Caller, edit, AbortSignal.timeout(5_000))).rejects.toThrow(
    /file is invalid without this edit/,
  )
})

test('V9: an edit that takes too long to check is refused, while everything else goes on', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'toolway-large-'))
  const path = join(folder.path, 'toolway.yaml')
  const source = { paths: [path], env: { HOME: folder.path }, cwd: folder.path }
  const empty = 'mcpServers: {}\n'
  await writeFile(path, empty)
  const loaded = await loadConfig(source)
  const clock = createManualClock()
  const redactor = createRedactor({ secrets: [], keys: [] })
  const current = () => ({ loaded, redactor, secrets: [] })
  const context = { current, source, auditKey: async () => 'k', clock }
  await using edits = new ConfigEdits(context as unknown as AdminContext)
  const admin = createConfigEditAdmin(context as unknown as AdminContext, edits)
  const server = (name: number) => `  "${name}": { command: node, args: [a, b, c] }\n`
  await writeFile(path, `mcpServers:\n${Array.from({ length: 20_000 }, (_, index) => server(index)).join('')}`)
  const edit = { changes: [{ path: ['version'], value: 1 }] }
  const preview = admin.previewEdit(edit)
  const refused = expect(preview).rejects.toMatchObject({ code: 'INVALID_ARGUMENTS' })
  await until(() => clock.pending > 0, { what: 'the time limit' })
  clock.advance(30_000)
  await refused
  await writeFile(path, empty)
  expect(await admin.previewEdit(edit)).toMatchObject({ problems: [], editable: { ok: true } })
})
