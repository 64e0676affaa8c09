import { describe, expect, test } from 'vitest'
import { toolway as command } from '../../../src/cli/kit.fixture.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { frozenConfig, frozenFacts, frozenGrants, thaw } from '../../fixtures/frozen-state.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { type Endpoint, type LocalToolway, startToolway } from '../../fixtures/toolway.ts'

/** A copy of the frozen state, which goes away with the stack. */
async function thawed(open: AsyncDisposableStack): Promise<Folder> {
  const folder = open.use(await temporaryFolder())
  await thaw('single', folder)
  return folder
}

const run = async <T>({ path: cwd }: Folder, ...words: string[]) => {
  const { code, stdout, stderr } = await command([...words, '--json', '--config', 'toolway.json'], {
    cwd,
    env: process.env,
  })
  return { code, stderr, value: JSON.parse(stdout) as T }
}

/** What a call led to: `ok`, or the code of its error. */
async function call(endpoint: Endpoint, tool: string, args = {}) {
  const session = await rawSession(endpoint)
  const { result, error } = await session.answer('tools/call', { name: `notes__${tool}`, arguments: args })
  const meta = result?._meta as Record<string, { code: string }> | undefined
  return error?.data?.code ?? error?.code ?? meta?.['dev.toolway/error']?.code ?? (result?.isError ? 'isError' : 'ok')
}

const listed = async (endpoint: Endpoint) => {
  const { result } = await (await rawSession(endpoint)).answer('tools/list')
  const names = ((result?.tools ?? []) as { name: string }[]).map(({ name }) => name)
  return names.filter((name) => name.startsWith('notes__')).map((name) => name.slice('notes__'.length))
}

/** Warnings and errors, of which an upgrade alone is no cause. */
const alarms = ({ log }: LocalToolway) =>
  log.lines
    .filter(({ level }) => level === 'warn' || level === 'error')
    .map(({ facts }) => facts as { readonly kind?: string; readonly definition?: string })

interface Verified {
  readonly ok: boolean
  readonly problems: readonly unknown[]
  readonly records: number
  readonly lanes: readonly { readonly lane: string; readonly files: number }[]
}

describe('V25: state in files that 0.1.0 wrote', () => {
  test('F11: the audit log verifies, is searched, and continues', async () => {
    await using open = new AsyncDisposableStack()
    const folder = await thawed(open)
    await using first = await startToolway(frozenConfig(2), { folder })
    await call(first, 'add_note', { text: 'note of this version' })
    await first[Symbol.asyncDispose]()
    expect(
      alarms(first)
        .map(({ kind, definition }) => kind ?? definition)
        .sort(),
    ).toEqual(['malformed-definition', 'malformed-member', 'notes.remove_note'])
    const { code, value, stderr } = await run<Verified>(folder, 'audit', 'verify')
    expect(value).toMatchObject({ ok: true, problems: [] })
    expect(code).toBe(0)
    expect(stderr).toBe('')
    expect(value.lanes.map(({ lane }) => lane)).toEqual(['1', '2'])
    expect(value.lanes[0]?.files).toBeGreaterThan(1)
    const found = async (text: string) => {
      const { value } = await run<{ rows: readonly { tool: string }[] }>(folder, 'audit', 'query', '--text', text)
      return value.rows.map(({ tool }) => tool)
    }
    for (const text of ['first note', 'second note', 'third note', 'fourth note', 'note of this version'])
      expect(await found(text)).toEqual(['add_note'])
    expect(await found('hunter2')).toEqual([])
  })

  test('F11: verifying before the first start finds nothing wrong, and says what cannot be checked yet', async () => {
    await using open = new AsyncDisposableStack()
    const folder = await thawed(open)
    await writeConfig(folder.path, frozenConfig(2), '')
    const { code, value, stderr } = await run<Verified>(folder, 'audit', 'verify')
    expect(value).toMatchObject({ ok: true, problems: [] })
    expect(code).toBe(0)
    expect(stderr).toContain('audit-marks')
  })

  test('B5: approved definitions can be used, changed ones stay blocked, and no other is reported as changed', async () => {
    await using open = new AsyncDisposableStack()
    const folder = await thawed(open)
    await using gateway = await startToolway(frozenConfig(2), { folder })
    const fine = ['add_note', 'list_notes', 'count_notes', 'export_notes', 'odd_note']
    const args = { add_note: { text: 'x' } } as Record<string, object>
    for (const tool of fine) expect([tool, await call(gateway, tool, args[tool])]).toEqual([tool, 'ok'])
    expect(await call(gateway, 'remove_note')).toBe('QUARANTINED')
    expect((await listed(gateway)).sort()).toEqual(fine.sort())
    const { value } = await run<{ pins: readonly { label: string; state: string }[] }>(folder, 'pins', 'list')
    const changed = value.pins.filter(({ state }) => state === 'changed')
    expect(changed.map(({ label, state }) => [label, state])).toEqual([['notes.remove_note', 'changed']])
  })

  test('B5: a definition that changes after the upgrade is compared with what 0.1.0 pinned', async () => {
    await using open = new AsyncDisposableStack()
    await using gateway = await startToolway(frozenConfig(3), { folder: await thawed(open) })
    expect(await call(gateway, 'add_note', { text: 'x' })).toBe('QUARANTINED')
    expect(await call(gateway, 'list_notes')).toBe('ok')
  })

  test('F1: the token is the same, and keys authenticate', async () => {
    await using open = new AsyncDisposableStack()
    const { token, keys } = frozenFacts()
    await using gateway = await startToolway(frozenConfig(2), { folder: await thawed(open) })
    expect(gateway.token).toBe(token)
    expect(await call({ url: gateway.url, token: keys.ci }, 'list_notes')).toBe('ok')
    const reload = async (key: string) => {
      const headers = { authorization: `Bearer ${key}`, 'toolway-admin': '1' }
      return (await fetch(new URL('/admin/api/config/reload', gateway.url), { method: 'POST', headers })).status
    }
    expect([await reload(keys.ops), await reload(keys.ci)]).toEqual([200, 403])
    await expect(rawSession({ url: gateway.url, token: `${keys.ci}x` })).rejects.toThrow('401')
  })

  test('S1: the remembered list is served although the server does not start, without what is no longer offered', async () => {
    await using open = new AsyncDisposableStack()
    const config = frozenConfig(2)
    const { notes } = config.mcpServers as { notes: { env: object } }
    const broken = { ...notes, env: { ...notes.env, NODE: '/nowhere/node' } }
    const mcpServers = { ...config.mcpServers, notes: broken }
    await using gateway = await startToolway({ ...config, mcpServers }, { folder: await thawed(open) })
    expect((await listed(gateway)).sort()).toEqual([
      'add_note',
      'count_notes',
      'export_notes',
      'list_notes',
      'odd_note',
    ])
  })

  test('B6: OAuth grants are found', async () => {
    await using open = new AsyncDisposableStack()
    const folder = await thawed(open)
    await writeConfig(folder.path, frozenConfig(2), '')
    const { value } = await run(folder, 'auth', '--list')
    expect(value).toMatchObject(frozenGrants)
  })
})
