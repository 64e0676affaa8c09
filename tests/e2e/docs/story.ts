import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import type { Commands } from '../../fixtures/commands/commands.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { compiled, serverProgram, toolwayLibrary, toolwayWords } from '../../fixtures/programs.ts'
import { until } from '../../fixtures/until.ts'
import { type Block, fileOf, isOutput } from './blocks.ts'
import { offerCommands } from './desk.ts'

/** As the pages write it in addresses. */
const usualPort = ':4322'

/** Whether a block belongs to a story, and is not only looked at. */
export const isTold = (block: Block): boolean =>
  block.marks.includes('test') || block.marks.includes('output') || fileOf(block) !== undefined

/**
 * Does what the blocks of a story say, one after another, in a fresh folder or in a copy of `files`. Each failure names
 * the line of its block.
 */
export async function tell(blocks: readonly Block[], commands: Commands, files?: string): Promise<void> {
  await using open = new AsyncDisposableStack()
  const { path } = open.use(await temporaryFolder())
  const home = join(path, 'home')
  const folder = join(path, 'work')
  const bin = join(path, 'bin')
  await Promise.all([mkdir(home), mkdir(folder), mkdir(bin)])
  if (files !== undefined) await cp(files, folder, { recursive: true })
  if (blocks.some(({ text: content }) => /createGateway\(|^node .*\.mts/m.test(content))) await installIn(folder)
  const port = await freePort()
  await writePrograms(bin, port, offerCommands(commands, path, open))
  const env = {
    PATH: [bin, dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(':'),
    HOME: home,
    ...compiled,
  }
  const start = (block: Block) =>
    spawn('sh', ['-ec', `exec 2>&1\n${block.text.replaceAll(usualPort, `:${port}`)}`], {
      cwd: folder,
      env,
      // What goes on until the end of the story is ended with all that it has started.
      detached: block.marks.includes('serve'),
      stdio: ['ignore', 'pipe', 'ignore'],
    })

  let printed = ''
  for (const block of blocks) {
    const file = fileOf(block)
    if (file !== undefined) await write(file.startsWith('~/') ? join(home, file.slice(2)) : join(folder, file), block)
    else if (block.marks.includes('serve')) open.use(await serving(start(block), port))
    else if (block.marks.includes('test')) printed = await ended(start(block), block)
    else if (block.marks.includes('output')) {
      const shown = printed
        .replaceAll(`:${port}`, usualPort)
        .replaceAll(folder, '/home/me/tools')
        .replaceAll(home, '/home/me')
      if (!isOutput(block.text, shown)) expect(shown, `what is printed in front of line ${block.line}`).toBe(block.text)
    }
  }
}

/**
 * `toolway` of this checkout, on a port of its own because stories run at the same time, and `npx` without a network.
 * Only what serves, or reads what another program prints, is a process of its own; `runElsewhere` runs the rest.
 */
async function writePrograms(bin: string, port: string, runElsewhere: string): Promise<void> {
  const cached = Object.entries(compiled).map(([name, value]) => `export ${name}='${value}'`)
  const toolway = `case "$1" in serve | stats) set -- "$@" --port ${port} ;; esac
if [ "$1" = serve ] || [ -p /dev/stdin ]; then exec node ${toolwayWords.map((word) => `'${word}'`).join(' ')} "$@"; fi
${runElsewhere}`
  const servers = (['everything', 'filesystem', 'memory'] as const).map(
    (name) => `@modelcontextprotocol/server-${name}) set -- '${serverProgram(name)}' "$@" ;;`,
  )
  const npx = `name="$2"; shift 2; case "$name" in\n${servers.join('\n')}\nesac\nexec node "$@"`
  for (const [name, script] of Object.entries({ toolway, npx })) {
    await writeFile(join(bin, name), `#!/bin/sh\n${cached.join('\n')}\n${script}\n`, { mode: 0o755 })
  }
}

/** Lets programs import Toolway as it is in this checkout, and what it comes with. */
/** A project as `npm init -y` makes it, in which files are CommonJS unless their names say otherwise. */
async function installIn(folder: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'work', version: '1.0.0', type: 'commonjs' }))
  const place = join(folder, 'node_modules/toolway')
  await mkdir(place, { recursive: true })
  await writeFile(join(place, 'package.json'), JSON.stringify({ type: 'module', exports: './index.js' }))
  await writeFile(join(place, 'index.js'), `export * from ${JSON.stringify(toolwayLibrary)}\n`)
  const zod = fileURLToPath(new URL('../../../node_modules/zod', import.meta.url))
  await symlink(zod, join(folder, 'node_modules/zod'))
}

async function write(path: string, { text: content }: Block): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, content)
}

async function ended(child: ChildProcess, { line, marks }: Block): Promise<string> {
  const exit = once(child, 'exit')
  const printed = await text(child.stdout as NodeJS.ReadableStream)
  const [code] = await exit
  const expected = marks.find((mark) => mark.startsWith('exit='))?.slice('exit='.length) ?? '0'
  expect(String(code), `the exit code of the block in line ${line}, which printed\n${printed}`).toBe(expected)
  return printed
}

/** Goes on when it listens; ends it, and all that it has started, with the story. */
async function serving(child: ChildProcess, port: string): Promise<AsyncDisposable> {
  const exit = once(child, 'exit')
  const printed = text(child.stdout as NodeJS.ReadableStream)
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`)
      .then(({ ok }) => ok)
      .catch(() => false)
  const ended = exit.then(async ([code]) => Promise.reject(new Error(`it ended with ${code}: ${await printed}`)))
  ended.catch(() => {})
  await Promise.race([until(isReady, { what: 'Toolway to listen' }), ended])
  return {
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number))
      await exit
    },
  }
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return String(port)
}
