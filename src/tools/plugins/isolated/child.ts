import { type Call, quietPeer } from '../../../core/call.ts'
import { systemClock } from '../../../core/clock.ts'
import { ToolwayError } from '../../../core/errors.ts'
import { Json } from '../../../json/json.ts'
import { thrownText } from '../../../lib/message-text.ts'
import type { Tool } from '../../define-tool.ts'
import { loadModule } from '../load-module.ts'
import type { FromChild, SentError, ToChild } from './child-process.ts'

/** The entry point of the child process. It loads one plugin and runs its tools until the gateway disconnects. */

let pluginTools: ReadonlyMap<string, Tool> = new Map()
const runningCalls = new Map<number, AbortController>()

const sendToGateway = (message: FromChild) => {
  if (process.connected) process.send?.(message)
}

process.on('disconnect', () => process.exit())
process.on('message', (message: ToChild) => {
  if (message.kind === 'load') void loadPlugin(message)
  else if (message.kind === 'cancel') runningCalls.get(message.id)?.abort(new ToolwayError('CANCELLED', 'cancelled'))
  else void runPluginCall(message)
})

async function loadPlugin({ file, library }: Extract<ToChild, { kind: 'load' }>): Promise<void> {
  const loaded = await loadModule(file, { modules: { library: new URL(library) }, clock: systemClock })
  pluginTools = new Map(loaded.tools.map((tool) => [tool.name, tool]))
  sendToGateway(loaded.problem === undefined ? { kind: 'ready' } : { kind: 'broken', problem: loaded.problem })
}

async function runPluginCall(asked: Extract<ToChild, { kind: 'call' }>): Promise<void> {
  const { id } = asked
  const stop = new AbortController()
  runningCalls.set(id, stop)
  try {
    const tool = pluginTools.get(asked.tool)
    if (!tool) throw new ToolwayError('TOOL_NOT_FOUND', `The plugin no longer has the tool ${asked.tool}.`)
    const { body } = await tool.run(callOf(asked, tool, stop.signal))
    sendToGateway({ kind: 'result', id, body: body.value })
  } catch (thrown) {
    sendToGateway({ kind: 'failure', id, error: sentError(thrown) })
  } finally {
    runningCalls.delete(id)
  }
}

/** Rebuilds the call from the message. The rebuilt call has no connection back to the caller. */
function callOf(asked: Extract<ToChild, { kind: 'call' }>, tool: Tool, signal: AbortSignal): Call {
  const { definition, readOnly, idempotent, timeoutMs = 0, run, name } = tool
  return {
    id: asked.callId,
    caller: asked.caller,
    entry: { kind: 'tool', server: 'native', name, definition, traits: { readOnly, idempotent, timeoutMs }, run },
    input: { arguments: Json.of(asked.arguments), meta: asked.meta },
    signal,
    peer: mute,
  }
}

const mute = quietPeer(() =>
  Promise.reject(new ToolwayError('INTERNAL', 'An isolated tool cannot send requests to its caller.')),
)

function sentError(thrown: unknown): SentError {
  const { code, message, details } = ToolwayError.from(thrown)
  const { cause, ...rest } = details
  return { code, message, details: rest, cause: cause === undefined ? undefined : causeOf(cause) }
}

const causeOf = (cause: unknown) =>
  (cause instanceof Error ? (cause.stack ?? cause.message) : thrownText(cause)).slice(0, 4_000)
