import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { version } from '../runtime/package-paths.ts'
import { folder } from './folder.fixture.ts'
import { invocationOf } from './invocation.ts'

/** A folder with the package in `place`, and the name `toolway` in a folder for programs. */
async function installed(place: string, bin: string) {
  const at = await folder()
  const main = join(at.cwd, place, 'toolway/dist/cli/main.js')
  await mkdir(dirname(main), { recursive: true })
  await writeFile(main, '', { mode: 0o755 })
  await mkdir(join(at.cwd, bin), { recursive: true })
  await symlink(main, join(at.cwd, bin, 'toolway'))
  const env = { PATH: ['/usr/bin', join(at.cwd, bin)].join(delimiter) }
  return { ...at, main, env, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() }
}

describe('B11: how Toolway is started again', () => {
  const root = resolve(fileURLToPath(new URL('../..', import.meta.url)))
  const npm = { npm_lifecycle_event: 'start', npm_package_name: 'toolway' }

  test('by npm or npx in a checkout: by npx, and from other folders by its script', () => {
    for (const env of [npm, { npm_lifecycle_event: 'npx' }])
      expect(invocationOf({ env, cwd: join(root, 'docs') }).command).toBe('npx toolway')
    expect(invocationOf({ env: npm, cwd: '/' }).command).toBe(`npm --prefix ${root} run -s toolway --`)
    expect(invocationOf({ env: {}, cwd: root })).toEqual({
      command: 'node src/cli/main.ts',
      program: [process.execPath, join(root, 'src/cli/main.ts')],
    })
  })

  test('by a script of another project that is called start too: as the package of this project', async () => {
    await using at = await installed('node_modules', 'node_modules/.bin')
    const { command, program } = invocationOf({ ...at, env: { ...at.env, ...npm, npm_package_name: 'shop' } })
    expect([command, program]).toEqual(['npx toolway', [process.execPath, at.main]])
    expect(invocationOf({ ...at, cwd: '/' }).command).toBe(`node ${at.main}`)
  })

  test('installed for all projects: by its name', async () => {
    await using at = await installed('lib/node_modules', 'bin')
    expect(invocationOf({ ...at, cwd: '/' }).command).toBe('toolway')
  })

  test.each([
    '/home/ada/.npm/_npx/3c1f/node_modules/toolway/dist/cli/main.js',
    '/home/ada/.cache/pnpm/dlx/18f-2/node_modules/toolway/dist/cli/main.js',
    '/tmp/xfs-1/dlx-77/node_modules/toolway/dist/cli/main.js',
    '/tmp/bunx-0-toolway@latest/node_modules/toolway/dist/cli/main.js',
    'C:\\Users\\ada\\AppData\\npm-cache\\_npx\\3c1f\\node_modules\\toolway\\dist\\cli\\main.js',
  ])('from a cache that may be gone tomorrow: by npx, with its version: %s', (main) => {
    const program = ['npx', '-y', `toolway@${version}`]
    expect(invocationOf({ env: {}, cwd: '/', main })).toEqual({ command: program.join(' '), program })
  })
})
