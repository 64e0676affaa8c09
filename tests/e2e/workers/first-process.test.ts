import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { alive, commandLine, descendants } from '../../fixtures/processes.ts'
import { compiled, toolwayMain, toolwayWords } from '../../fixtures/programs.ts'
import { goodHeaders, rpc } from '../../fixtures/raw-http.ts'
import { until } from '../../fixtures/until.ts'

// At once, because each has processes of its own and waits for them.
test.concurrent('B10: when the first process is killed, workers answer what they were asked, and then end without a crash', async () => {
  await using toolway = await startCommand({ limits: { perMinute: 1_000 } }, { words: ['--workers', '2'] })
  using agent = Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), {
    [Symbol.dispose]: () => agent.destroy(),
  })
  const send = (body: string, more: Record<string, string> = {}): ClientRequest => {
    const headers = { ...goodHeaders(toolway), ...more, 'content-length': `${body.length}` }
    return request(toolway.url, { method: 'POST', headers, agent }).end(body)
  }
  const answerTo = async (asked: ClientRequest) => {
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return { session: String(response.headers['mcp-session-id']), answer: await text(response) }
  }
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const { session } = await answerTo(send(rpc(1, 'initialize', hello)))
  const workers = toolway.children().filter((pid) => commandLine(pid).includes(`${toolwayMain} serve`))
  expect(workers).toHaveLength(2)

  // The call is there before the end of the first process is, so that its worker asks one that is gone what the limits say.
  for (const pid of workers) process.kill(pid, 'SIGSTOP')
  const call = send(rpc(2, 'tools/call', { name: 'hash', arguments: { data: 'x' } }), { 'mcp-session-id': session })
  await once(call, 'finish')
  process.kill(toolway.pid, 'SIGKILL')
  await until(() => !alive(toolway.pid), { what: 'the end of the first process' })
  for (const pid of workers) process.kill(pid, 'SIGCONT')

  expect((await answerTo(call)).answer).toContain('"result":{')
  await until(() => !workers.some(alive), { what: 'the end of the workers' })
  expect(toolway.said()).not.toContain('EPIPE')
})

test.concurrent('B10: a worker that is just starting when the first process is killed ends, too', async ({
  onTestFinished,
}) => {
  await using folder = await temporaryFolder()
  const { path: home } = folder
  const env = { PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home, ...compiled }
  // From the moment it exists to the one when it asks whether it may listen.
  for (const afterMs of [0, 100, 200, 400]) {
    const words = [...toolwayWords, 'serve', '--port', '0', '--workers', '2']
    const first = spawn(process.execPath, words, { cwd: home, env, stdio: 'ignore' })
    const pid = first.pid as number
    await until(() => descendants(pid).length > 0, { what: 'a worker' })
    await setTimeout(afterMs)
    const workers = descendants(pid)
    onTestFinished(() => {
      for (const one of workers.filter(alive)) process.kill(one, 'SIGKILL')
    })
    first.kill('SIGKILL')
    await once(first, 'exit')
    await until(() => !workers.some(alive), { what: `the end of a worker ${afterMs} ms old`, withinMs: 60_000 })
  }
}, 240_000)
