import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, stdioProgram, type TestClient } from '../../fixtures/clients.ts'
import { type Command, startCommand } from '../../fixtures/command.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { alive, commandLine, descendants, parentOf } from '../../fixtures/processes.ts'
import { behindShell, stdioServers } from '../../fixtures/servers.ts'
import { until } from '../../fixtures/until.ts'

const servers = { plain: stdioServers.probe(), wrapped: behindShell(stdioServers.probe()) }

/** Waits until the server has a call that it will never answer. */
const arrived = (client: TestClient, server: string) =>
  until(async () => ((await client.callTool(`${server}.state`)).structuredContent?.waiting as number) > 0, {
    what: 'the call to arrive',
  })

describe('a server that is killed in mid-call', () => {
  const open = new AsyncDisposableStack()
  let toolway: Command
  let client: TestClient

  beforeAll(async () => {
    toolway = open.use(await startCommand({ mcpServers: servers }))
    client = open.use(await connect('v2', { endpoint: toolway }))
  })

  afterAll(() => open.disposeAsync())

  const pidOf = async (server: string) => {
    const { content } = await client.callTool(`${server}.pid`)
    return Number((content[0] as { text: string }).text)
  }

  test.each([
    ['itself', 'plain', (server: number) => server],
    ['behind a shell', 'wrapped', (server: number) => server],
    ['by its shell alone', 'wrapped', (server: number) => parentOf(server) as number],
  ])('F12: %s: the caller gets OUTCOME_UNKNOWN, and the next call works', async (how, server, victimOf) => {
    const old = await pidOf(server)
    const call = client.callTool(`${server}.wait`)
    await arrived(client, server)
    // A server behind a shell is to be followed by all that the shell has started.
    const shell = parentOf(old) === toolway.pid ? [] : [parentOf(old) as number]
    const family = [...shell, old, ...shell.flatMap(descendants)]
    const start = performance.now()
    process.kill(victimOf(old), 'SIGKILL')
    expect(await call).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: expect.stringContaining(server) }],
      _meta: { 'dev.toolway/error': { code: 'OUTCOME_UNKNOWN', server } },
    })
    console.info(`killed ${how}: the caller knew after ${(performance.now() - start).toFixed(0)} ms`)
    const { content } = await client.callTool(`${server}.echo`, { message: 'again' })
    expect(content).toEqual([{ type: 'text', text: 'Echo: again' }])
    expect(await pidOf(server)).not.toBe(old)
    await until(() => !family.some(alive), { what: 'the rest of the dead server to go' })
  })
})

describe.concurrent('the end of Toolway', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'G1, B7: after %s not one child or grandchild lives, and the exit code is 0',
    async (signal) => {
      await using toolway = await startCommand({ mcpServers: servers, server: { shutdownGrace: '500ms' } })
      const client = await connect('v1', { endpoint: toolway })
      for (const server of Object.keys(servers)) await client.callTool(`${server}.echo`, { message: 'up' })
      const call = client.callTool('plain.wait').catch((error) => error)
      await arrived(client, 'plain')
      const children = toolway.children()
      expect(children.map(commandLine).join('\n')).toMatch(/sleep 600/)
      expect(children.length).toBeGreaterThanOrEqual(4)
      const { code, survivors, said } = await toolway.stop(signal)
      expect({ code, survivors: survivors.map(commandLine) }, said).toEqual({ code: 0, survivors: [] })
      await client[Symbol.asyncDispose]()
      await call
    },
  )

  test('G1: after SIGKILL its stdio servers see the end of their input and exit', async () => {
    await using toolway = await startCommand({
      mcpServers: { plain: stdioServers.probe(), everything: stdioServers.everything() },
    })
    const client = await connect('v1', { endpoint: toolway })
    await client.callTool('plain.echo', { message: 'up' })
    await client.callTool('everything.echo', { message: 'up' })
    expect(toolway.children().length).toBeGreaterThanOrEqual(2)
    const { signal, survivors } = await toolway.stop('SIGKILL', 10_000)
    expect({ signal, survivors: survivors.map(commandLine) }).toEqual({ signal: 'SIGKILL', survivors: [] })
    await client[Symbol.asyncDispose]()
  })

  test('G1: the stdio front end ends with its client, and its servers with it', async () => {
    await using folder = await temporaryFolder()
    const configFile = await writeConfig(folder.path, { mcpServers: servers }, randomUUID())
    const client = await connect('v2', stdioProgram(configFile))
    const { content } = await client.callTool('wrapped.pid')
    const pid = Number((content[0] as { text: string }).text)
    expect(alive(pid)).toBe(true)
    await client[Symbol.asyncDispose]()
    await until(() => !alive(pid), { what: 'the server of the stdio front end to end' })
  })
})
