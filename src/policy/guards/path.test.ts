import { mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { shown } from '../../../tests/abuse/case.ts'
import { honestPaths, pathAttacks } from '../../../tests/abuse/paths.ts'
import { runs } from '../../../tests/fixtures/runs.ts'
import { ToolwayError } from '../../core/errors.ts'
import { compileGuards } from './index.ts'
import { climbs, createPathGuard, pathReadings } from './path.ts'
import { type Sandbox, sandbox } from './sandbox.fixture.ts'

let folders: Sandbox
beforeAll(async () => {
  folders = await sandbox()
})
afterAll(() => folders[Symbol.asyncDispose]())

const check = async (path: string, roots: readonly string[] = [folders.root, folders.second]) =>
  await compileGuards([{ kind: 'path', arguments: ['path'], roots: [...roots] }], { server: 'files' })!({ path })

const refusal = async (path: string, roots?: readonly string[]): Promise<ToolwayError | undefined> => {
  try {
    await check(path, roots)
    return undefined
  } catch (error) {
    return error as ToolwayError
  }
}

describe('path guard', () => {
  for (const [why, path] of pathAttacks) {
    test(`F9: refused (${why}) ${shown(path)}`, async () => {
      const error = await refusal(folders.fill(path))
      expect(error).toBeInstanceOf(ToolwayError)
      expect(error).toMatchObject({
        code: 'INVALID_PATH',
        details: { server: 'files', rule: 'mcpServers.files.guards[0]' },
      })
    })
  }

  for (const [why, path] of honestPaths) {
    test(`F9: passed (${why}) ${shown(path)}`, async () => {
      expect(await refusal(folders.fill(path))).toBeUndefined()
    })
  }

  test('F9: the refusal names the argument and the allowed folders, and says what to do', async () => {
    const { root, second } = folders
    const wanted = `use a path inside ${root} or ${second}`
    expect((await refusal('notes.txt'))?.message).toBe(`The argument "path" is not an absolute path; ${wanted}.`)
    expect((await refusal('/etc/passwd'))?.message).toBe(
      `The argument "path" is outside the allowed folders after resolving symbolic links; ${wanted}.`,
    )
    expect((await refusal(`${root}/..`))?.message).toBe(
      `The argument "path" leaves its folder with a form of ".."; ${wanted} without "..".`,
    )
  })

  test('F9: a root that does not exist yet is used as written, and later as the target of the link it becomes', async () => {
    const later = join(folders.base, 'later')
    expect(await refusal(join(later, 'a/b.txt'), [later])).toBeUndefined()
    expect(await refusal(join(folders.base, 'later-not'), [later])).toBeDefined()
    await symlink(join(folders.base, 'outside'), later)
    expect(await refusal(join(later, 'a/b.txt'), [later])).toBeUndefined()
    expect(await refusal(join(folders.base, 'outside/secret.txt'), [later])).toBeUndefined()
    await rm(later)
    expect(await refusal(join(folders.base, 'outside/secret.txt'), [later])).toBeDefined()
  })

  test('F9: a folder that turns into a link to the outside is noticed at the next call', async () => {
    const turning = join(folders.root, 'turning')
    await mkdir(turning)
    expect(await refusal(join(turning, 'x'))).toBeUndefined()
    await rename(turning, `${turning}-away`)
    await symlink(join(folders.base, 'outside'), turning)
    expect(await refusal(join(turning, 'x'))).toBeDefined()
  })

  test('F9: odd letters in the root itself do not matter', async () => {
    const root = join(folders.base, 'ไฟล์ ＡＢＣ 100%25')
    expect(await refusal(join(root, 'x.txt'), [root])).toBeUndefined()
    expect(await refusal(`${root}/`, [`${root}/`])).toBeUndefined()
    expect(await refusal(join(root, '%2e%2e/x.txt'), [root])).toBeDefined()
  })

  test('F9: with / as root everything absolute passes but traversal', async () => {
    expect(await refusal('/etc/hosts', ['/'])).toBeUndefined()
    expect(await refusal('/', ['/'])).toBeUndefined()
    expect(await refusal('/etc/../etc/hosts', ['/'])).toBeDefined()
  })

  test('F9: with / as root links are not resolved, because the path may be one of another machine', async () => {
    for (const link of ['{root}/dangling', '{root}/loop', '{root}/secret-link']) {
      expect(await refusal(folders.fill(link), ['/']), link).toBeUndefined()
      expect(await refusal(folders.fill(link)), link).toBeDefined()
    }
  })

  test.each(['/proc/self/cwd/notes.txt', '/proc/thread-self/cwd', '/pr%6fc/self/cwd/notes.txt', '/./proc/self/cwd/x'])(
    'F9: %s is refused although the gateway itself runs in an allowed folder',
    async (path) => {
      expect(await refusal(path, [process.cwd()])).toMatchObject({ code: 'INVALID_PATH' })
      expect(await refusal('/dev/shm/toolway/x', ['/dev/shm/toolway'])).toBeUndefined()
    },
  )

  test('F9: shared memory is an ordinary folder, unlike the rest of /dev', async () => {
    const paths = ['/dev/fd/0', '/dev/shmall/x', '/dev/shm/x']
    const reasons = await Promise.all(paths.map(async (path) => (await refusal(path))?.message))
    expect(reasons).toEqual([
      expect.stringContaining('differs for each process'),
      expect.stringContaining('differs for each process'),
      expect.stringContaining('outside the allowed folders'),
    ])
  })

  test('the corpus leaves no trace on disk', async () => {
    expect(await readdir(join(folders.base, 'outside'))).toEqual(['secret.txt'])
  })
})

describe('path guard on Windows', () => {
  const refuse = (at: string, reason: string) => new ToolwayError('INVALID_PATH', `${at} ${reason}`)
  const guard = createPathGuard({ roots: ['C:\\data'] }, refuse, 'win32')
  test.each([
    'D:',
    'C:data',
    '\\data\\x',
    '/data/x',
    '\\\\server\\share\\x',
    '\\\\?\\C:\\data\\x',
    '\\\\.\\pipe\\x',
    '//server/share',
    'C:\\data\\file.txt:stream',
    'C:\\data\\file.txt::$DATA',
    'C:\\data\\nul',
    'C:\\data\\COM1.txt',
    'C:\\data\\aux .log',
    'C:\\data\\..\\x',
    'C:/data/../x',
    'C:\\data\\.. \\x',
    'C:\\data\\...\\x',
    'file:///C:/data/x',
  ])('F9: refused for its form %j', async (text) => {
    await expect(guard([{ at: 'path', text }])).rejects.toThrow(/^path (?!leads)/)
  })
})

describe('readings of a path', () => {
  test('F9: plain paths have one', () => {
    expect(pathReadings('/data/docs/a.txt')).toEqual(['/data/docs/a.txt'])
  })

  test('F9: no encoding of a way up passes', async () => {
    const spelling = (character: '.' | '/') =>
      fc.constantFrom(
        ...(character === '.'
          ? [
              '.',
              '%2e',
              '%2E',
              '%252e',
              '%u002e',
              '%c0%ae',
              '%e0%80%ae',
              '\uff0e',
              '\u2024',
              '\u3002',
              '.\u200b',
              '%ef%bc%8e',
            ]
          : ['/', '%2f', '%252F', '\\', '%5c', '%u2215', '%c0%af', '\uff0f', '\u2215', '\u29f8', '%e2%88%95']),
      )
    const way = fc
      .tuple(
        spelling('/'),
        spelling('.'),
        spelling('.'),
        spelling('/'),
        fc.constantFrom('', ' ', '%20', ';a', '\u00ad'),
      )
      .map(([before, one, two, after, tail]) => `${before}${one}${two}${tail}${after}`)
    const path = fc
      .tuple(
        fc.array(fc.constantFrom('docs', 'new', 'inner'), { maxLength: 2 }),
        fc.array(way, { minLength: 1, maxLength: 3 }),
      )
      .map(([names, ways]) => `${folders.root}/${names.join('/')}${ways.join('')}outside/secret.txt`)
    await fc.assert(
      fc.asyncProperty(path, async (text) => {
        expect(await refusal(text), text).toMatchObject({ code: 'INVALID_PATH' })
      }),
      runs(100, 15_000),
    )
  })

  test('F9: plain names inside the root pass, whatever letters they are made of', async () => {
    const name = fc
      .string({ unit: fc.constantFrom(...'abcXYZ019-_ +@()[]{}=,!éßжñ中の'), minLength: 1, maxLength: 12 })
      .filter((text) => !['out', 'loop', 'dangling'].includes(text))
    await fc.assert(
      fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 4 }), async (names) => {
        expect(await refusal([folders.root, ...names].join('/'))).toBeUndefined()
      }),
      runs(60, 3_000),
    )
  })

  test('F9: the longest path is read at once, whatever it is made of', () => {
    for (const unit of ['%25', '%2e', '.', ' ', '/', '%c0', '\u0338', 'a']) {
      expect(pathReadings(`/${unit.repeat(4096 / unit.length)}`)?.some(climbs)).toBe(unit === '.' || unit === '%2e')
    }
  })
})
