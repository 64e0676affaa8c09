import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../tests/fixtures/any-character.ts'
import { temporaryFolder } from '../../../tests/fixtures/folders.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { callOf } from '../../core/call.fixture.ts'
import { ToolwayError } from '../../core/errors.ts'
import { createFileSink } from './file.ts'
import type { Artifact, Pointer } from './sink.ts'
import { safeNames } from './template.ts'

const artifact = (changes: Partial<Artifact> = {}): Artifact => ({
  id: 'id1',
  sink: 'reports',
  agent: 'agent',
  content: 'content',
  metadata: {},
  timestamp: '2026-11-07T12:30:45.678Z',
  ...changes,
})

const context = { call: callOf(), signal: new AbortController().signal }
const keep = async (path: string, template: string, changes?: Partial<Artifact>): Promise<string> => {
  const pointer = (await createFileSink('reports', { path, template }).write(artifact(changes), context)) as Pointer
  return fileURLToPath(pointer.uri)
}

const nasty = [
  '',
  '.',
  '..',
  '/',
  '\\',
  '../',
  '..\\',
  '%2e%2e%2f',
  'a',
  'b',
  'c',
  'd',
  'a/victim',
  '../../x',
  '/etc/x',
  '~',
]
const odd = ['\0', '\n', ' ', 'CON', 'nul.txt', 'C:', '．．／', '\u2215', '\u202e', '-', '😀', '\ud800']
/** What a caller may put into a name. */
const value = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...nasty, ...odd) },
  fc.array(fc.constantFrom(...nasty, ...odd), { maxLength: 5 }).map((parts) => parts.join('')),
  fc.string({ unit: anyCharacter, maxLength: 300 }),
)
const blank = fc.constantFrom('{agent}', '{id}', '{metadata.x}', '{metadata.y}', '{content}', '{sink}', '{date}')
/** What even the operator may write: most of its parts mean something to a file system. */
const template = fc
  .array(
    fc.oneof(
      fc.constantFrom(...nasty),
      blank,
      fc
        .array(fc.oneof(blank, fc.constantFrom(...nasty, ...odd), fc.string({ maxLength: 4 })), { maxLength: 4 })
        .map((parts) => parts.join('')),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((parts) => parts.join('/'))

describe('names of files', () => {
  test.each([
    ['{agent}-{timestamp}.md', {}, ['agent-2026-11-07T12-30-45-678Z.md']],
    ['{date}/{sink}/{id}.md', {}, ['2026-11-07', 'reports', 'id1.md']],
    ['{metadata.title}.md', { metadata: { title: 'A/B\\C: "x"' } }, ['A-B-C- -x-.md']],
    ['{metadata.none}', {}, ['_']],
    ['{metadata.__proto__}{metadata.constructor}', {}, ['__']],
    ['{agent}', { agent: '..' }, ['_']],
    ['{agent}{metadata.a}', { agent: '', metadata: { a: '.' } }, ['__']],
    ['{metadata.a}{metadata.a}/x', { metadata: { a: '.' } }, ['__', 'x']],
    ['../../{id}', {}, ['_', '_', 'id1']],
    ['/etc/passwd', {}, ['etc', 'passwd']],
    ['{metadata.a}', { metadata: { a: '../../etc/passwd' } }, ['_-..-etc-passwd']],
    ['{metadata.a}', { metadata: { a: 'con' } }, ['_con']],
    ['nul.txt', {}, ['_nul.txt']],
    ['{metadata.a}.md', { metadata: { a: 'a\0b\nc\u202ed\u2215e\uff0ff' } }, ['a-b-c-d-e-f.md']],
    ['.{id}', {}, ['.id1']],
    ['{id}. . ', {}, ['id1']],
    ['{metadata.a}', { metadata: { a: { b: 1 } } }, ['--b--1-']],
    ['{content}', {}, ['content']],
    ['///', {}, ['_']],
  ])('J4: %s with %j', (template, changes, names) => {
    expect(safeNames(template, artifact(changes))).toEqual(names)
  })

  test('J4: any template and values give plain names', () => {
    fc.assert(
      fc.property(template, value, value, value, (template, agent, x, y) => {
        for (const name of safeNames(template, artifact({ agent, id: agent, content: y, metadata: { x, y } }))) {
          expect(name).not.toMatch(/^\.{0,2}$|[/\\\0\n\u202e]|[. ]$|^(?:con|nul)(?:\.|$)/i)
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200)
          expect(name.isWellFormed()).toBe(true)
        }
      }),
      runs(250, 10_000),
    )
  })

  test('J4: a long name is cut before its ending, between characters', () => {
    const [name = ''] = safeNames('{agent}{agent}{agent}{agent}.md', artifact({ agent: 'ä😀'.repeat(40) }))
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(180)
    expect(name).toMatch(/\.md$/)
    expect(name).not.toContain('\ufffd')
  })
})

describe('files', () => {
  test('J4: an existing file is not overwritten', async () => {
    await using folder = await temporaryFolder()
    await writeFile(join(folder.path, 'a.md'), 'old')
    const paths = [
      await keep(folder.path, 'a.md', { content: 'one' }),
      await keep(folder.path, 'a.md', { content: 'two' }),
    ]
    expect(paths).toEqual([join(folder.path, 'a-2.md'), join(folder.path, 'a-3.md')])
    expect(await readFile(join(folder.path, 'a.md'), 'utf8')).toBe('old')
    const many = await Promise.all(Array.from({ length: 12 }, (_, at) => keep(folder.path, 'b', { content: `${at}` })))
    expect(new Set(many).size).toBe(12)
    expect((await readdir(folder.path)).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  test('J4: a folder that is a link into another place is not entered, a name that is a link not followed', async () => {
    await using outside = await temporaryFolder()
    await using folder = await temporaryFolder()
    await symlink(outside.path, join(folder.path, 'agent'))
    await symlink(join(outside.path, 'victim'), join(folder.path, 'id1.md'))
    await expect(keep(folder.path, '{agent}/x.md')).rejects.toThrow('is not a folder but a link')
    expect(await keep(folder.path, '{id}.md')).toBe(join(folder.path, 'id1-2.md'))
    expect(await readdir(outside.path)).toEqual([])
  })

  test('J4: the folder itself may be a link of the operator, and the pointer is real', async () => {
    await using real = await temporaryFolder()
    await using folder = await temporaryFolder()
    await symlink(real.path, join(folder.path, 'out'))
    expect(await keep(join(folder.path, 'out'), '{id}.md')).toBe(join(real.path, 'id1.md'))
  })

  test('J4: the error for a folder that cannot be written names the setting', async () => {
    await using folder = await temporaryFolder()
    await writeFile(join(folder.path, 'file'), '')
    const failure = await keep(join(folder.path, 'file'), 'x').catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(ToolwayError)
    expect(failure).toMatchObject({
      code: 'SERVER_UNAVAILABLE',
      message: expect.stringContaining('sinks.reports.path'),
    })
    await mkdir(join(folder.path, 'sub'))
    await chmod(join(folder.path, 'sub'), 0o500)
    // The superuser may write anywhere.
    if (process.getuid?.() !== 0) await expect(keep(join(folder.path, 'sub'), 'x')).rejects.toThrow('EACCES')
  })

  test('J4: no name, template or value leads out of the folder, whatever links lie in it', async () => {
    await using base = await temporaryFolder()
    const folder = join(base.path, 'inside')
    const outside = join(base.path, 'outside')
    await mkdir(folder)
    await mkdir(outside)
    await writeFile(join(outside, 'victim'), 'untouched')
    // Links that names may well hit: to a folder, to a file, upwards, to nowhere.
    await symlink(outside, join(folder, 'a'))
    await symlink(join(outside, 'victim'), join(folder, 'b'))
    await symlink('..', join(folder, 'c'))
    await symlink(join(outside, 'new'), join(folder, 'd'))
    await fc.assert(
      fc.asyncProperty(template, value, value, value, async (template, agent, x, y) => {
        const before = new Set(treeOf(folder))
        try {
          const path = await keep(folder, template, { agent, metadata: { x, y }, id: agent, content: `by ${x}` })
          expect(path.startsWith(`${folder}/`)).toBe(true)
          expect(before.has(path)).toBe(false)
          expect(lstatSync(path).isFile()).toBe(true)
          expect(readFileSync(path, 'utf8')).toBe(Buffer.from(`by ${x}`).toString())
        } catch (thrown) {
          // A link in the way ends it.
          expect(thrown).toMatchObject({ code: 'INVALID_PATH' })
        }
        expect(treeOf(outside)).toEqual([join(outside, 'victim')])
        expect(readFileSync(join(outside, 'victim'), 'utf8')).toBe('untouched')
        expect(readdirSync(base.path).sort()).toEqual(['inside', 'outside'])
      }),
      runs(20, 100),
    )
  })

  test('J4: a write that breaks off leaves nothing behind', async () => {
    await using folder = await temporaryFolder()
    async function* halves() {
      yield 'the first half'
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    }
    // What a full disk does in the middle of a file.
    const content = halves() as unknown as string
    await expect(keep(folder.path, '{id}.md', { content })).rejects.toThrow('ENOSPC')
    expect(readdirSync(folder.path)).toEqual([])
  })
})

/** Every file in a folder; links are not followed. */
const treeOf = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((found) =>
    found.isDirectory() ? treeOf(join(folder, found.name)) : [join(folder, found.name)],
  )
