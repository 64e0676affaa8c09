import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { Access } from '../../core/access.ts'
import type { Call, Caller } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { Result } from '../../core/result.ts'
import { tellWaiting, type Wait } from '../../core/waiting.ts'

/** A call as execute_tool and execute_tools take it. */
export interface NestedCallRequest {
  readonly server: string
  readonly tool: string
  /** In the bytes in which they came. */
  readonly args: Json | undefined
}

export const nestedCallFields = {
  server: z.string().describe('A name from list_servers.'),
  tool: z.string().describe('The name of the tool as get_server_tools or find_tool gives it.'),
  // Not a zod record, which would copy the object and drop odd keys: the tool gets what was sent.
  args: z
    .unknown()
    .optional()
    .meta({ type: 'object', description: "The tool's arguments, an object (a JSON string of one is understood too)." }),
}

export const timeoutMs = z.int().min(1).max(3_600_000).optional()

/** The carried call has its own timeout; the one around it only must not strike first. */
export const outerTimeoutMs = 24 * 3_600_000

export interface NestedCallContext {
  readonly caller: Caller
  readonly timeoutMs: number | undefined
  /** The `_meta` to send along. */
  readonly meta: Call['input']['meta']
  /** What the caller brought beside the arguments, such as the answers of another round. */
  readonly rest?: Call['input']['rest']
  /** The way back to the caller, where it is not the call's own. */
  readonly peer?: Call['peer']
  /** Hears of the waiting for a server that is still starting, where that is not the caller. */
  readonly waiting?: Wait['progress']
}

/** Runs a call inside a call: a new one with its own decision, limits and audit, and the same way back to the caller. */
export async function runNestedCall(
  access: Access,
  call: Call,
  asked: NestedCallRequest,
  carried: NestedCallContext,
): Promise<Result> {
  const { caller, timeoutMs, meta, rest } = carried
  const args = argumentsOf(asked)
  const began = performance.now()
  const { entry } = await access.view(caller).find('tool', asked.server, asked.tool, {
    ...waitOf(call),
    timeoutMs,
    ...(carried.waiting && { progress: carried.waiting }),
  })
  // Tools that carry calls do not carry one another, or one request could grow without end.
  if (entry.traits.carries) {
    throw new ToolwayError(
      'INVALID_ARGUMENTS',
      `${call.entry.name} does not run ${entry.name}: name the tool that you want to run, or call ${entry.name} itself.`,
    )
  }
  return access.handle({
    id: randomUUID(),
    parent: call.id,
    caller,
    entry,
    input: { arguments: args, meta, ...(rest && { rest }) },
    signal: call.signal,
    peer: carried.peer ?? call.peer,
    ...(call.trace && { trace: call.trace }),
    // What the caller allows includes the time that the server needed to start.
    ...(timeoutMs !== undefined && { timeoutMs: Math.max(1, Math.round(timeoutMs - (performance.now() - began))) }),
  })
}

/** How a meta-tool waits for a server that is still starting, on behalf of its caller. */
export const waitOf = ({ input, peer, signal }: Call): Wait => ({
  signal,
  progress: (waitedMs, servers) => tellWaiting(input.meta, peer, waitedMs, servers),
})

/** Models often write the arguments out as JSON; that is no reason to fail. */
function argumentsOf({ server, tool, args }: NestedCallRequest): Call['input']['arguments'] {
  if (args === undefined || args.value === undefined || args.value === null) return Json.of({})
  const given = typeof args.value === 'string' ? parsed(args.value) : args
  const value = given?.value
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return given as Call['input']['arguments']
  throw new ToolwayError(
    'INVALID_ARGUMENTS',
    `"args" for ${server}.${tool} must be an object with the tool's arguments, each named once.`,
  )
}

function parsed(text: string): Json | undefined {
  if (text.trim() === '') return Json.of({})
  try {
    return Json.parse(text)
  } catch {
    return undefined
  }
}
