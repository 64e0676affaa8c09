import { setTimeout as wait } from 'node:timers/promises'
import { unusedPort } from '../../tests/fixtures/listening.ts'
import type { Aim } from '../load/orders.ts'
import { startProgram } from '../targets/child.ts'
import { openSession } from '../targets/session.ts'
import type { StartedPeer } from './peer.ts'

const timeoutMs = 60_000

export interface Front {
  readonly command: string
  args(port: number): readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly folder: string
  /** Makes it ready and gives calls of the echo tool; tried again until it works or patience ends. */
  aim(port: number): Promise<Aim>
}

/** Starts another gateway on loopback and waits until it answers a call. */
export async function startFront({ command, args, env, folder, aim }: Front): Promise<StartedPeer> {
  const port = await unusedPort()
  // Whatever it writes into its user's home goes with the folder.
  const ownHome = { HOME: folder, XDG_STATE_HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder }
  const program = startProgram(command, args(port), { cwd: folder, env: { ...process.env, ...ownHome, ...env } })
  const end = performance.now() + timeoutMs
  let last: unknown
  while (performance.now() < end && program.child.exitCode === null) {
    try {
      const found = await aim(port)
      return { pid: program.pid, aim: found, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() }
    } catch (thrown) {
      last = thrown
    }
    await wait(200)
  }
  const said = program.said().slice(-200)
  await program[Symbol.asyncDispose]()
  throw new Error(`it does not answer: ${last instanceof Error ? last.message : last} ${said}`)
}

/** The calls of a gateway that speaks MCP over streamable HTTP; its echo tool is found by its name's end. */
export async function mcpAim(url: string, token?: string): Promise<Aim> {
  const session = await openSession({ url, ...(token !== undefined && { token }) })
  const { tools } = (await session.ask('tools/list')) as { tools: { name: string }[] }
  const tool = tools.find(({ name }) => name === 'echo' || /[^a-z]echo$/i.test(name))?.name
  if (tool === undefined) throw new Error(`no echo among ${tools.length} tools`)
  await session.ask('tools/call', { name: tool, arguments: { message: 'hello' } })
  return session.calls(tool)
}
