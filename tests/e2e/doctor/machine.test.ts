import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, copyFile, link, mkdir, readdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Commands, startCommands } from '../../fixtures/commands/commands.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { unusedPort } from '../../fixtures/listening.ts'
import { compiled, toolwayWords } from '../../fixtures/programs.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { runDoctor, withoutCode } from './run-doctor.ts'

let commands: Commands
beforeAll(() => {
  commands = startCommands()
})
afterAll(() => commands[Symbol.asyncDispose]())

/** Waits for the first line that a process prints; disposing of the result ends the process. */
async function spoken(child: ChildProcess) {
  const exit = once(child, 'exit')
  await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), 'line')
  return {
    pid: child.pid as number,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exit
    },
  }
}

test('B11: a running gateway is recognised and queried, and keeps running', async () => {
  await using folder = await temporaryFolder()
  const port = await unusedPort()
  const config = { ...withoutCode, server: { port }, mcpServers: { probe: stdioServers.probe() } }
  await writeConfig(folder.path, config, 'doctor')
  const around = { cwd: folder.path, env: { PATH: process.env.PATH, HOME: folder.path, ...compiled } }
  const served = [...toolwayWords, 'serve', '--json']
  await using gateway = await spoken(
    spawn(process.execPath, served, { ...around, stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  for (const _ of ['once', 'and again']) {
    const { code, of } = await runDoctor({ cwd: folder.path, commands })
    expect(of('port')).toMatchObject({
      status: 'ok',
      message: expect.stringContaining(String(gateway.pid)),
    })
    expect(of('audit.lock')).toMatchObject({ status: 'ok', message: expect.stringContaining(String(gateway.pid)) })
    expect(of('audit.chain')).toMatchObject({ status: 'ok' })
    expect(of('credentials.token')).toMatchObject({ status: 'ok' })
    expect(code).toBe(0)
  }
  expect((await readdir(join(folder.path, 'state', 'audit'))).filter((name) => /^\d+$/.test(name))).toEqual(['1'])
})

test('B11, S7: a port in use is reported with the command that shows its process, and the sandbox is checked', async () => {
  await using folder = await temporaryFolder()
  const other = createServer((socket) => socket.destroy())
  await new Promise<void>((ready) => other.listen(0, '127.0.0.1', ready))
  const { port } = other.address() as { port: number }
  await writeConfig(folder.path, { server: { port } }, 'doctor')
  const { code, of } = await runDoctor({ cwd: folder.path, commands })
  expect(code).toBe(5)
  expect(of('port')).toMatchObject({ status: 'problem', remedy: expect.stringContaining(`lsof -nP -iTCP:${port}`) })
  expect(of('sandbox')).toMatchObject({ status: 'ok', message: expect.stringMatching(/^code in JavaScript.* runs /) })
  await new Promise((closed) => other.close(closed))
})

/** An unprivileged user: file modes have no effect on root, who may run the tests. */
const nobody = process.getuid?.() === 0 ? 54321 : undefined

test('B11: a state folder that is not writable, and one of another user, are problems', async () => {
  await using folder = await temporaryFolder()
  const state = join(folder.path, 'state')
  await writeConfig(folder.path, withoutCode, 'doctor')
  await mkdir(state, { mode: 0o500 })
  if (nobody !== undefined) for (const path of [folder.path, state]) await chown(path, nobody, nobody)
  const patient = { cwd: folder.path, ...(nobody !== undefined && { uid: nobody }) }
  const { code, of } = await runDoctor(patient)
  expect(code).toBe(5)
  expect(of('stores.folder')).toMatchObject({
    status: 'problem',
    message: expect.stringContaining('is not writable (EACCES)'),
    remedy: expect.stringContaining('chmod u+rwx'),
  })
  if (nobody === undefined) return
  await chown(state, 0, 0)
  await chmod(state, 0o777)
  const foreign = await runDoctor(patient)
  expect(foreign.of('stores.folder')).toMatchObject({
    status: 'problem',
    message: expect.stringContaining('another user'),
  })
})

const holding = `
  const { DatabaseSync } = require('node:sqlite')
  const database = new DatabaseSync(process.argv[1])
  database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  console.log('held')
  setInterval(() => {}, 1e6)
`

test('B11: a lane of the audit log that another program has locked is reported', async () => {
  await using folder = await temporaryFolder()
  await writeConfig(folder.path, withoutCode, 'doctor')
  const lane = join(folder.path, 'state', 'audit', '1')
  await mkdir(lane, { recursive: true, mode: 0o700 })
  await chmod(join(folder.path, 'state'), 0o700)
  // Any program that is not the one that runs Toolway.
  const program = join(folder.path, 'backup-tool')
  await link(process.execPath, program).catch(() => copyFile(process.execPath, program))
  const child = spawn(program, ['-e', holding, join(lane, 'lock')], { stdio: ['ignore', 'pipe', 'inherit'] })
  await using holder = await spoken(child)
  const { of } = await runDoctor({ cwd: folder.path, commands })
  expect(of('audit.lock')).toMatchObject({
    status: 'warning',
    message: expect.stringContaining(`backup-tool (process ${holder.pid})`),
  })
})
