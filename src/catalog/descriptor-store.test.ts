import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as base, expect } from 'vitest'
import type { Descriptors } from '../core/stores.ts'
import { descriptorStore } from './descriptor-store.ts'
import { keepingLog } from './source.fixture.ts'

const test = base.extend<{ folder: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: the test runner reads the pattern
  folder: async ({}, use) => {
    const parent = await mkdtemp(join(tmpdir(), 'toolway-'))
    await use(join(parent, 'catalog'))
    await rm(parent, { recursive: true })
  },
})

const descriptorsOf = (changes: Partial<Descriptors> = {}): Descriptors => ({
  fetchedAt: 1,
  era: 'legacy',
  protocolVersion: '2025-11-25',
  serverInfo: { name: 'x' },
  capabilities: { tools: {} },
  tools: [{ name: 'a', odd: [1, { deep: true }] }],
  resources: [],
  templates: [],
  prompts: [],
  ...changes,
})

test('S1: what a server offers is remembered by the next run, for the same configuration only', async ({ folder }) => {
  await descriptorStore(folder).save('files', 'f1', descriptorsOf({ instructions: 'hi' }))
  const next = descriptorStore(folder)
  expect(await next.load('files', 'f1')).toEqual(descriptorsOf({ instructions: 'hi' }))
  expect(await next.load('files', 'f2')).toBeUndefined()
  expect(await next.load('other', 'f1')).toBeUndefined()
})

test('S1: only the user can read it, and nothing half written is left behind', async ({ folder }) => {
  await descriptorStore(folder).save('files', 'f1', descriptorsOf())
  const names = await readdir(folder)
  expect(names).toEqual([expect.stringMatching(/^files-[0-9a-f]{16}\.json$/)])
  expect((await stat(join(folder, names[0] as string))).mode & 0o777).toBe(0o600)
  expect((await stat(folder)).mode & 0o777).toBe(0o700)
})

test('S1: any server name makes a file of its own', async ({ folder }) => {
  const store = descriptorStore(folder)
  const servers = ['../../evil', 'a/b', 'a_b', 'A', 'a', '', '名前', '😀'.repeat(200), '__proto__']
  await Promise.all(servers.map((server, index) => store.save(server, 'f', descriptorsOf({ fetchedAt: index }))))
  for (const [index, server] of servers.entries()) expect((await store.load(server, 'f'))?.fetchedAt).toBe(index)
  expect(await readdir(folder)).toHaveLength(servers.length)
  expect(await readdir(join(folder, '..'))).toEqual(['catalog'])
})

test('S1: saves of one server do not cross; the last one stays and a load waits for it', async ({ folder }) => {
  const store = descriptorStore(folder)
  const long = store.save('files', 'f', descriptorsOf({ fetchedAt: 0, instructions: 'x'.repeat(20_000_000) }))
  const saves = [long, ...[1, 2, 3].map((fetchedAt) => store.save('files', 'f', descriptorsOf({ fetchedAt })))]
  expect((await store.load('files', 'f'))?.fetchedAt).toBe(3)
  await Promise.all(saves)
  expect((await store.load('files', 'f'))?.fetchedAt).toBe(3)
  expect(await readdir(folder)).toHaveLength(1)
})

test('S1: a damaged record is ignored and logged', async ({ folder }) => {
  const log = keepingLog()
  const store = descriptorStore(folder, log)
  await store.save('files', 'f', descriptorsOf())
  const path = join(folder, (await readdir(folder))[0] as string)
  const good = await readFile(path, 'utf8')
  const record = JSON.parse(good)
  const withDescriptors = (changes: object) =>
    JSON.stringify({ ...record, descriptors: { ...record.descriptors, ...changes } })
  const damaged = [
    '',
    good.slice(0, -10),
    'null',
    '[]',
    '"x"',
    '{}',
    '\u0000\u0001',
    JSON.stringify({ ...record, version: 99 }),
    JSON.stringify({ ...record, server: 'other' }),
    JSON.stringify({ ...record, descriptors: null }),
    withDescriptors({ tools: {} }),
    withDescriptors({ prompts: [null] }),
    withDescriptors({ era: 'future' }),
    withDescriptors({ fetchedAt: 'now' }),
    withDescriptors({ capabilities: undefined }),
    withDescriptors({ instructions: 5 }),
  ]
  for (const [index, text] of damaged.entries()) {
    await writeFile(path, text)
    expect([text, await store.load('files', 'f')]).toEqual([text, undefined])
    expect(log.lines).toHaveLength(index + 1)
  }
  await store.save('files', 'f', descriptorsOf())
  expect(await store.load('files', 'f')).toEqual(descriptorsOf())
})

test('S1: a folder that cannot be written to fails the save and nothing else', async ({ folder }) => {
  await writeFile(folder, 'a file in the way')
  const log = keepingLog()
  const store = descriptorStore(folder, log)
  await expect(store.save('files', 'f', descriptorsOf())).rejects.toThrow()
  expect(await store.load('files', 'f')).toBeUndefined()
  await rm(folder)
  await store.save('files', 'f', descriptorsOf())
  expect(await store.load('files', 'f')).toBeDefined()
})
