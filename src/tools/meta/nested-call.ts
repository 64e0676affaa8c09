import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { Access } from '../../core/access.ts'
import { isAppOnly } from '../../core/apps.ts'
import type { Call, Caller } from '../../core/call.ts'
import { seenName } from '../../core/entry.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import type { Result } from '../../core/result.ts'
import { notifyWaiting, type Wait } from '../../core/waiting.ts'
import { Json } from '../../json/json.ts'

export interface NestedCallRequest {
  readonly server: string
  readonly tool: string
  /** The arguments as the client sent them, byte for byte. */
  readonly args: Json | undefined
}

export const nestedCallFields = {
  server: z.string().describe('A name from list_servers.'),
  tool: z.string().describe('The name of the tool, from get_server_tools or find_tool.'),
  // Do not use a Zod record, which would copy the object and drop keys such as `__proto__`: the tool must get exactly
  // what was sent.
  args: z
    .unknown()
    .optional()
    .meta({ type: 'object', description: "The tool's arguments: an object, or an object as a JSON string." }),
}

/** Zero means the server's own timeout, like an absent value: many models fill arguments that they do not need. */
export const timeoutArgument = z.int().min(0).max(3_600_000).optional()

/** The timeout for a tool that runs another call. That call has its own timeout, which must fire first. */
export const outerTimeoutMs = 24 * 3_600_000

export interface NestedCallContext {
  readonly caller: Caller
  readonly timeoutMs: number | undefined
  readonly meta: Call['input']['meta']
  /** The data that the client sent besides the arguments, such as its answers to questions that the call returned. */
  readonly rest?: Call['input']['rest']
  readonly peer?: Call['peer']
  /** Whether the call may run a program, which makes calls of its own. */
  readonly runsPrograms?: true
  /** Whether to refuse tools that are not known to be read-only. */
  readonly onlyReads?: true | undefined
  /** Called while a server is starting, instead of sending progress notifications. */
  readonly waiting?: Wait['progress']
  readonly starting?: Call['starting']
  readonly resultShare?: Call['resultShare']
}

/** Runs a call inside another call. The new call has its own decision, limits and audit record, but the same peer. */
export async function runNestedCall(
  access: Access,
  call: Call,
  asked: NestedCallRequest,
  carried: NestedCallContext,
): Promise<Result> {
  const { caller, timeoutMs, meta, rest } = carried
  const args = nestedArguments(asked)
  const began = performance.now()
  const progress = carried.waiting ?? waitFor(call).progress
  const wait = { signal: call.signal, timeoutMs, progress, parent: call.id }
  const { entry, restore } = await access.view(caller).find('tool', asked.server, asked.tool, wait)
  if (isAppOnly(entry.definition))
    throw invalidArguments(`${call.entry.name} cannot run ${entry.name}: only the page of its app may call it.`)
  // Tools that run other calls cannot run each other; otherwise one request could grow without bound. One program is
  // allowed, because the tools that it may call do not include any of these.
  if (entry.traits.carries && !(entry.traits.counted && carried.runsPrograms)) {
    const where = entry.traits.counted ? 'directly or with execute_tool' : 'directly'
    const advice = `pass the tool that you want to run, or call ${entry.name} ${where}.`
    throw invalidArguments(`${call.entry.name} cannot run ${entry.name}: ${advice}`)
  }
  if (carried.onlyReads && !entry.traits.readOnly) {
    const what = `${asked.server}.${seenName(entry)} is not known to be a read-only tool`
    throw new ToolwayError('WRITE_NOT_ALLOWED', `Write not allowed: ${what}. Call it with call_write_tool.`)
  }
  return access.handle({
    id: randomUUID(),
    parent: call.id,
    caller,
    entry,
    input: { arguments: restore ? restore(args) : args, meta, rest },
    signal: call.signal,
    peer: carried.peer ?? call.peer,
    ...{ trace: call.trace, trail: call.trail },
    starting: carried.starting,
    resultShare: carried.resultShare,
    // The caller's timeout includes the time that the server took to start, so subtract that time.
    wholeTimeoutMs: timeoutMs,
    timeoutMs: timeoutMs && Math.max(1, Math.round(timeoutMs - (performance.now() - began))),
  })
}

export const waitFor = ({ input, peer, signal }: Call): Wait => ({
  signal,
  progress: (waitedMs, servers) => notifyWaiting(input.meta, peer, waitedMs, servers),
})

/** The arguments of a nested call. Also accepts a JSON string, which models often send instead of an object. */
function nestedArguments({ server, tool, args }: NestedCallRequest): Call['input']['arguments'] {
  if (args === undefined || args.value === undefined || args.value === null) return Json.of({})
  const given = typeof args.value === 'string' ? parseArguments(args.value) : args
  const value = given?.value
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return given as Call['input']['arguments']
  throw invalidArguments(`"args" for ${server}.${tool} must be an object with the tool's arguments, each named once.`)
}

function parseArguments(text: string): Json | undefined {
  if (text.trim() === '') return Json.of({})
  try {
    return Json.parse(text)
  } catch {
    return undefined
  }
}
