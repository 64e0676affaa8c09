import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { serverProgram } from '../../tests/fixtures/programs.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import { silentLog } from '../core/log.ts'
import { isRunning } from '../upstream/transports/receiver.fixture.ts'
import { established, gone, rogue } from '../upstream/transports/stdio.fixture.ts'
import { createOrphanReaper, startTicks } from './orphan-reaper.ts'

const linux = test.runIf(existsSync('/proc/self/stat'))
const transports = JSON.stringify(pathToFileURL(serverProgram('transports')).href)

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'toolway-leftovers-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** Looks ten times as often whether a process has ended, so that one that ignores SIGTERM is killed sooner. */
const impatient: Clock = {
  ...systemClock,
  after: (ms, callback, ...more) => systemClock.after(ms < 1_000 ? ms / 10 : ms, callback, ...more),
}

const reaperIn = (path: string) => {
  const orphanReaper = createOrphanReaper(path, silentLog, impatient)
  onTestFinished(() => orphanReaper[Symbol.asyncDispose]() as Promise<void>)
  return orphanReaper
}

/**
 * Starts a small gateway whose server ignores SIGTERM and has a grandchild outside its process group. The test kills
 * the gateway.
 */
async function killedGateway(path: string, marked = true) {
  const code = `
    import { createOrphanReaper, StdioTransport, systemClock as clock, silentLog as log } from ${transports}
    const orphanReaper = createOrphanReaper(${JSON.stringify(path)}, log)
    const env = ${marked ? '{}' : "{ TOOLWAY_OWNER: '' }"}
    const line = new StdioTransport({ name: 'rogue', command: process.execPath, args: [${JSON.stringify(rogue)}], env, orphanReaper, clock, log })
    const tools = [['grandchild', { detached: true }], ['grandchild', {}], ['ignore-end', {}]]
    const pids = []
    const next = () => {
      const tool = tools.shift()
      if (!tool) return console.log(line.pid, pids.slice(0, 2).join(' '))
      const params = { name: tool[0], arguments: tool[1] }
      void line.send({ body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })), exchange: 1 })
    }
    const message = (body) => {
      pids.push(JSON.parse(body).result.content[0].text)
      next()
    }
    await line.open({ message, failed: console.log, closed: console.log }, new AbortController().signal)
    next()
  `
  const gateway = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await once(createInterface({ input: gateway.stdout }), 'line')
  const [server, stray, inGroup] = String(said).split(' ').map(Number) as [number, number, number]
  onTestFinished(() => {
    for (const pid of [server, stray, inGroup]) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  })
  return { gateway, server, stray, inGroup }
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

linux('security: what a killed Toolway left behind is ended by the next one before it starts anything', async () => {
  const path = await folder()
  const { gateway, server, stray, inGroup } = await killedGateway(path)
  // While the gateway is running, its processes are not orphans.
  await reaperIn(path).reaped
  expect([server, stray, inGroup].map(isRunning)).toEqual([true, true, true])
  await kill(gateway)
  expect([server, stray, inGroup].map(isRunning)).toEqual([true, true, true])
  await reaperIn(path).reaped
  await Promise.all([gone(server), gone(stray), gone(inGroup)])
  expect(await readdir(path)).toEqual([])
})

linux('security: a process that hides its environment is found by its number, with its group', async () => {
  const path = await folder()
  const { gateway, server, stray, inGroup } = await killedGateway(path, false)
  await kill(gateway)
  await reaperIn(path).reaped
  await Promise.all([gone(server), gone(inGroup)])
  // A process without the mark, outside the group, is not ended.
  expect(isRunning(stray)).toBe(true)
})

linux('security: a number that somebody else has now is left alone', async () => {
  const path = await folder()
  const bystander = spawn('sleep', ['600'], { stdio: 'ignore', detached: true })
  onTestFinished(() => void bystander.kill('SIGKILL'))
  const { pid } = bystander as { pid: number }
  const dead = `1-1-${'0'.repeat(36)}.json`
  const start = Number(startTicks(pid)) - 1
  await writeFile(join(path, dead), JSON.stringify({ children: [{ pid, start: String(start) }] }))
  await reaperIn(path).reaped
  expect(isRunning(pid)).toBe(true)
  expect(await readdir(path)).toEqual([])
})

linux('security: records of another machine, torn ones and other files do no harm', async () => {
  const path = await folder()
  await mkdir(join(path, 'deeper'))
  await writeFile(join(path, 'notes.txt'), 'mine')
  await writeFile(join(path, `1-1-${'a'.repeat(36)}.json`), '{"children": [{"pi')
  const own = { pid: process.pid, start: startTicks(process.pid) }
  await writeFile(join(path, `1-2-${'b'.repeat(36)}.json`), JSON.stringify({ space: 'elsewhere', children: [own] }))
  await reaperIn(path).reaped
  expect((await readdir(path)).sort()).toEqual(['deeper', 'notes.txt'])
})

linux('security: a folder that cannot be written costs nothing but the record', async () => {
  const path = join(await folder(), 'file')
  await writeFile(path, '')
  const { call } = await established({ orphanReaper: reaperIn(path) })
  expect(await call('echo', { text: 'here' })).toBe('here')
})

linux(
  'security: a grandchild that has left the group of its server goes soon after it, and the record with us',
  async () => {
    const path = await folder()
    const orphanReaper = reaperIn(path)
    const { transport, call, pid } = await established({ orphanReaper })
    const stray = Number(await call('grandchild', { detached: true }))
    const [name] = await readdir(path)
    expect(JSON.parse(await readFile(join(path, name as string), 'utf8')).children).toMatchObject([{ pid }])
    await transport[Symbol.asyncDispose]()
    expect(isRunning(stray)).toBe(true)
    await gone(stray)

    const other = await established({ orphanReaper })
    const second = Number(await other.call('grandchild', { detached: true }))
    await other.transport[Symbol.asyncDispose]()
    await orphanReaper[Symbol.asyncDispose]()
    await gone(second)
    expect(await readdir(path)).toEqual([])
  },
)
