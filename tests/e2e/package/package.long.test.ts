import { cp, glob, mkdir, readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect } from '../../fixtures/clients.ts'
import { runServe } from '../../fixtures/command.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { oldNode } from '../../fixtures/old-node.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type Block, fileOf, storiesOf } from '../docs/blocks.ts'
import { build, install, options, type Packed, pack, root, run } from './packed.ts'

// At once, because most wait for a process of their own.
describe.concurrent('the package', () => {
  let place: Folder
  let packed: Packed
  let empty: string
  let main: string
  /** What would be published. */
  let tarball: Promise<string>

  beforeAll(async () => {
    place = await temporaryFolder()
    const built = join(place.path, 'package')
    await build(built)
    tarball = pack(built, place.path)
    empty = join(place.path, 'empty')
    packed = await install(built, empty)
    main = join(packed.folder, 'dist/cli/main.js')
  }, 180_000)
  afterAll(() => place[Symbol.asyncDispose]())

  test('S2, F9: serves from an empty folder: tools, programs, guards and the dashboard', async () => {
    const home = join(place.path, 'home')
    const config = join(empty, 'toolway.json')
    const guards = [{ kind: 'sql', arguments: ['message'] }]
    const servers = { everything: { ...stdioServers.everything(), guards } }
    await writeFile(config, JSON.stringify({ mcpServers: servers }))
    const env = { PATH: process.env.PATH, HOME: home }
    await using toolway = await runServe({ cwd: empty, env, main, configFile: config })
    await using client = await connect('v2', { endpoint: toolway })

    const hash = await client.callTool('hash', { data: 'abc', algorithm: 'sha256' })
    expect(JSON.stringify(hash)).toContain('ba7816bf8f01cfea')
    const program = await client.callTool('execute_code', { code: 'return 6 * 7', language: 'javascript' })
    expect(JSON.stringify(program)).toContain('42')
    const read = await client.callTool('everything__echo', { message: 'SELECT 1' })
    expect(JSON.stringify(read)).toContain('SELECT 1')
    const drop = await client.callTool('everything__echo', { message: 'DROP TABLE t' })
    expect(JSON.stringify(drop)).toContain('UNSAFE_SQL')
    const page = await fetch(new URL('/', toolway.url))
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<title>Toolway')])
  })

  test('npx finds the command, and it knows its version', async () => {
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    const { stdout } = await run('npx', ['--no-install', 'toolway', '--version'], { cwd: empty })
    expect(stdout.trim()).toBe(version)
  })

  test('programs get its types, and nothing of ours that they could not use', async () => {
    const program = `
      import { createGateway, createLog, defineTool, loadConfig, type Gateway, ToolwayError } from 'toolway'
      export const open = async (): Promise<Gateway> =>
        createGateway(await loadConfig({ env: process.env, cwd: '.' }), { log: createLog({ level: 'info' }) })
      export const code: string = new ToolwayError('TIMEOUT', 'too late').code
      // @ts-expect-error: a gateway has no such thing
      export const wrong = (gateway: Gateway) => gateway.nonsense
      const inputSchema = { type: 'object', properties: { text: { type: 'string' } } } as const
      export const echo = defineTool({ name: 'echo', description: '', inputSchema, handler: ({ text }) => String(text) })
      export const said = async (gateway: Gateway): Promise<unknown> =>
        (await gateway.call('native__echo', { text: 'a' }, { agent: 'x', onProgress: ({ progress }) => progress })).content[0]
      export const tools = async (): Promise<string[]> =>
        (await (await createGateway({ tools: [echo] })).list()).map(({ name }) => name)
    `
    await writeFile(join(empty, 'program.ts'), program)
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node']
    // Our declarations are checked, those that the compiler comes with are not.
    const types = ['--typeRoots', join(root, 'node_modules/@types'), '--skipDefaultLibCheck', '--singleThreaded']
    const { stdout } = await run(join(root, 'node_modules/.bin/tsc'), [...options, ...types, 'program.ts'], {
      cwd: empty,
      // It ends before its garbage matters.
      env: { ...process.env, GOGC: 'off' },
    }).catch((error: { stdout: string }) => error)
    expect(stdout).toBe('')
  })

  test('V26: the documented program runs in a project that `npm init -y` made, and npm asks about no scripts', async () => {
    const project = join(place.path, 'project')
    await mkdir(project)
    await run('npm', ['init', '-y'], { cwd: project })
    const installed = await run('npm', ['install', ...options, await tarball], { cwd: project })
    expect(installed.stderr).not.toContain('script')
    const blocks = storiesOf(await readFile(join(root, 'docs/library.md'), 'utf8')).flat()
    const program = blocks.find((block) => fileOf(block) !== undefined)
    const file = fileOf(program as Block) as string
    await writeFile(join(project, file), program?.text ?? '')
    const { stdout } = await run(process.execPath, [file], { cwd: project, env: { ...process.env, HOME: project } })
    expect(stdout).toContain('{"city":"Oslo","days":["sunny","sunny"],"for":"guide"}')
  })

  test('B11: run by npx, it connects a client to itself by npx and its version, not by the path of a cache', async () => {
    const home = join(place.path, 'npx')
    await mkdir(home)
    await writeFile(join(home, 'toolway.yaml'), 'version: 1\n')
    const npm = { npm_config_userconfig: join(homedir(), '.npmrc'), npm_config_cache: join(home, 'cache') }
    const env = { ...process.env, ...npm, HOME: home }
    await run('npx', ['-y', `file:${await tarball}`, 'connect', 'cursor', '--yes'], { cwd: home, env })
    const { mcpServers } = JSON.parse(await readFile(join(home, '.cursor/mcp.json'), 'utf8'))
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    expect([mcpServers.toolway.command, ...mcpServers.toolway.args.slice(0, 3)]).toEqual([
      ...['npx', '-y', `toolway@${version}`, 'stdio'],
    ])
  })

  test('V26: a bundle that contains the library says how to leave it out', async () => {
    const bundle = join(place.path, 'bundle.mjs')
    await cp(join(packed.folder, 'dist/index.js'), bundle)
    const { stderr } = await run(process.execPath, [bundle]).catch((error: { stderr: string }) => error)
    expect(stderr).toContain('external')
  })

  test('contains only the needed files and the licences', () => {
    expect(packed.files).toEqual(
      expect.arrayContaining([
        ...['README.md', 'LICENSE', 'CHANGELOG.md', 'package.json', 'server.json', 'toolway.schema.json'],
        ...['dist/THIRD-PARTY-NOTICES.md', 'web/dist/THIRD-PARTY-NOTICES.md', 'web/dist/index.html'],
        ...['dist/cli/main.js', 'dist/index.js', 'dist/index.d.ts', 'dist/sandbox/guest/python.py'],
      ]),
    )
    const allowed = /^(dist|web\/dist|deploy)\/|^[A-Za-z.-]+$/
    expect(packed.files.filter((file) => !allowed.test(file) || /\.(test|fixture|map)\b/.test(file))).toEqual([])
  })

  test('the check for an older Node can be parsed by it: nothing else is loaded first', async () => {
    const ours = async (file: string): Promise<string[]> => {
      const text = await readFile(join(packed.folder, 'dist', file), 'utf8')
      const loading = /^import .*from "(\.[^"]+)"|^(?:const .* = require|createRequire\(.*\))\(["'](\.[^"']+)["']\)/gm
      const imported = [...text.matchAll(loading)].map(([, one, other = one]) => join(dirname(file), other as string))
      return [file, ...(await Promise.all(imported.map(ours))).flat()]
    }
    const first = await ours('cli/main.js')
    const texts = await Promise.all(first.map((file) => readFile(join(packed.folder, 'dist', file), 'utf8')))
    expect(texts.join('').length).toBeLessThan(6_000)
    expect(texts.join('')).toContain('needs Node')
  })

  test.skipIf(oldNode === undefined)(
    'V18: with an older Node, the command and the library say which one they need',
    async () => {
      const imported = ['--input-type=module', '-e', `import ${JSON.stringify(join(packed.folder, 'dist/index.js'))}`]
      for (const words of [[main, 'serve'], imported]) {
        const { stderr } = await run(oldNode as string, words).catch((error: { stderr: string }) => error)
        expect(stderr).toMatch(/Toolway needs Node 24: this is Node \d/)
      }
    },
  )

  test('B6: what is installed has no install script, and says where its source, its page and its issues are', async () => {
    const manifest = async (file: string) => JSON.parse(await readFile(file, 'utf8'))
    const own = await manifest(join(root, 'package.json'))
    const installed = await Array.fromAsync(glob('node_modules/{*,@*/*}/package.json', { cwd: empty }), (file) =>
      manifest(join(empty, file)),
    )
    expect(installed.map(({ name }) => name)).toEqual(expect.arrayContaining(['toolway', 'zod']))
    for (const { name, scripts = {} } of installed)
      expect([name, ...Object.keys(scripts).filter((script) => /^(pre|post)?install$|^prepare$/.test(script))]).toEqual(
        [name],
      )
    const { repository, homepage, bugs } = installed.find(({ name }) => name === 'toolway')
    expect({ repository, homepage, bugs }).toEqual({
      ...{ repository: own.repository, homepage: own.homepage, bugs: own.bugs },
    })
  })

  test('publint reports no problems', async () => {
    const manifest = JSON.parse(await readFile(join(packed.folder, 'package.json'), 'utf8'))
    const { messages } = await publint({ pkgDir: packed.folder, strict: true, pack: false })
    expect(messages.map((message) => formatMessage(message, manifest, { color: false }))).toEqual([])
  })

  test('server.json has the same name and version as the package', async () => {
    const read = async (file: string) => JSON.parse(await readFile(join(root, file), 'utf8'))
    const [manifest, entry] = [await read('package.json'), await read('server.json')]
    const [npm] = entry.packages
    expect([entry.name, entry.version, npm.identifier, npm.version]).toEqual([
      ...[manifest.mcpName, manifest.version, manifest.name, manifest.version],
    ])
    // The registry takes no more.
    expect(entry.description.length).toBeLessThanOrEqual(100)
  })
})
