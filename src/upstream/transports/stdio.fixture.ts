import { expect, onTestFinished } from 'vitest'
import { serverProgram } from '../../../tests/fixtures/programs.ts'
import { systemClock } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { requestBytes } from '../../wire/message.ts'
import { ask, collector, isRunning } from './receiver.fixture.ts'
import { StdioTransport, type StdioTransportOptions } from './stdio.ts'
import type { Transport } from './transport.ts'

/** The path of a server that misbehaves on command. */
export const rogue = serverProgram('rogue-stdio')
export const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
export const never: AbortSignal = new AbortController().signal

/** Creates a transport to that server, for one test. */
export function make(options: Partial<StdioTransportOptions> = {}): Transport {
  const transport = new StdioTransport({
    name: 'rogue',
    command: process.execPath,
    args: [rogue],
    env: {},
    clock: systemClock,
    log: silentLog,
    closing: { endMs: 200, terminateMs: 200 },
    ...options,
  })
  onTestFinished(() => transport[Symbol.asyncDispose]() as Promise<void>)
  return transport
}

export async function started(options?: Partial<StdioTransportOptions>) {
  const transport = make(options)
  const heard = collector()
  await transport.open(heard, never)
  let id = 0
  /** Calls a tool and returns the text of its result. */
  const call = async (name: string, args: object = {}) => {
    const { content } = await ask(transport, heard, ++id, 'tools/call', { name, arguments: args })
    return content[0]?.text as string
  }
  /** Sends a call without waiting for its response. */
  const start = (name: string, args: object = {}) => {
    const params = bytesOf({ name, arguments: args })
    return transport.send({ body: requestBytes(++id, 'tools/call', params), exchange: id })
  }
  return { transport, heard, pid: transport.pid as number, call, start }
}

export async function established(options?: Partial<StdioTransportOptions>) {
  const all = await started(options)
  await ask(all.transport, all.heard, 0, 'initialize', hello)
  all.transport.established('2025-11-25')
  return all
}

export const bytesOf = (value: object): Buffer => Buffer.from(JSON.stringify(value))

/** Waits until a process has ended. It polls, because the kernel notifies only the parent process. */
export const gone = (pid: number) => expect.poll(() => isRunning(pid)).toBe(false)
