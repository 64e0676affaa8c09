import * as z from 'zod'
import { wrapPeer } from '../../core/call.ts'
import { ServerError, ToolwayError } from '../../core/errors.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Result } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { wellFormedJson } from '../../json/parse-json.ts'
import { defineTool, type Tool, type ToolOptions } from '../define-tool.ts'
import {
  type NestedCallRequest,
  nestedCallFields,
  outerTimeoutMs,
  runNestedCall,
  timeoutArgument,
} from './nested-call.ts'
import { agentId, type MetaToolsOptions } from './shared.ts'

const maxBatchCalls = fixedLimits.executeToolsCalls.value

/** Maximum size of a batch's result: the same as for a single result. Each item counts twice, as object and as text. */
const maxBatchResultBytes = fixedLimits.executeToolsBytes.value

const executeToolsInput = z.object({
  agent_id: agentId,
  calls: z.array(z.strictObject(nestedCallFields)).min(1).max(maxBatchCalls),
  timeout_ms: timeoutArgument.describe('Timeout for each call.'),
})

export const executeTools = ({ access, asAgent }: MetaToolsOptions): Tool =>
  defineTool({
    name: 'execute_tools',
    title: 'Execute several tools',
    description:
      `Runs up to ${maxBatchCalls} independent tool calls at once, on any servers, and returns in the same order: ` +
      '{results: [{server, tool, ok, result | error}]}. A failed call does not affect the others. Much faster than one call ' +
      'at a time. Not for calls that need the result of another call.',
    input: executeToolsInput,
    timeoutMs: outerTimeoutMs,
    carries: true,
    async run({ agent_id, calls, timeout_ms }, { call, signal }) {
      // Only the batch reports progress: values from calls that share its token would make the progress go backwards.
      const { progressToken, ...meta } = call.input.meta
      const written = call.input.arguments.member('calls')?.items()
      const items = createBatchItems()
      let answered = 0
      let told = 0
      /** Reports the batch's progress. Several calls may be waiting, so values that would go backwards are dropped. */
      const tell = (progress: number, message?: string) => {
        if (progress <= told || signal.aborted) return
        told = progress
        if (progressToken === undefined) return
        call.peer.notify('notifications/progress', Json.of({ progressToken, progress, total: calls.length, message }))
      }
      const carried = {
        caller: asAgent(call, agent_id),
        timeoutMs: timeout_ms || undefined,
        meta,
        // Each result counts twice, as object and as text.
        resultShare: call.resultShare && call.resultShare / calls.length / 2,
        // Calls in a batch cannot return a question, so they ask the client while running.
        peer: wrapPeer(call.peer, { rounds: false }),
        waiting: (waitedMs: number, servers: readonly string[]) =>
          tell(answered + waitedMs / 1e9, `Waiting for ${servers.join(', ')} to start.`),
      }
      // Group the calls by server, so that calls to the same server are sent back to back.
      const byServer = Map.groupBy(calls.entries(), ([, { server }]) => server)
      await Promise.all(
        [...byServer.values()].flat().map(async ([index, { server, tool }]) => {
          const asked = { server, tool, args: written?.[index]?.member('args') }
          await items.add(index, asked, () => runNestedCall(access, call, asked, carried))
          answered += 1
          tell(answered)
        }),
      )
      signal.throwIfAborted()
      return items.result()
    },
  })

/** The items of a batch's result. Those that exceed its maximum size are left out as they arrive. */
function createBatchItems() {
  const items: string[] = []
  const texts: string[] = []
  let room = maxBatchResultBytes
  /** How many bytes of results may still be parsed, which takes time even for a result that then does not fit. */
  let readable = maxBatchResultBytes

  const put = (index: number, item: object): number => {
    const json = wellFormedJson(JSON.stringify(item))
    const text = JSON.stringify(json).slice(1, -1)
    items[index] = json
    texts[index] = text
    return Buffer.byteLength(json) + Buffer.byteLength(text)
  }

  return {
    /** Adds the result of a call. If the call fails, or its result cannot be read, the item contains the error. */
    async add(index: number, { server, tool }: NestedCallRequest, run: () => Promise<Result>): Promise<void> {
      let size: number
      try {
        const { body, isError } = await run()
        size = body.bytes.length
        if (size * 2 <= room && size <= readable) {
          readable -= size
          size = put(index, { server, tool, ok: !isError, result: body.exact })
        } else size = Number.POSITIVE_INFINITY
      } catch (thrown) {
        size = put(index, { server, tool, ok: false, error: batchError(thrown) })
      }
      if (size <= room) room -= size
      else put(index, { server, tool, ok: false, error: batchError(leftOut(server)) })
    },
    /** The whole result. Concatenates the JSON of the items, which may be large, instead of serializing them again. */
    result(): Result {
      const text = `{\\"results\\":[${texts.join(',')}]}`
      const structured = `{"results":[${items.join(',')}]}`
      const body = `{"content":[{"type":"text","text":"${text}"}],"structuredContent":${structured}}`
      return { body: Json.raw(Buffer.from(body)), isError: false }
    },
  }
}

const leftOut = (server: string): ToolwayError =>
  new ToolwayError(
    'OUTCOME_UNKNOWN',
    `The call ran, but its result was left out: the results of a batch are limited to ${maxBatchResultBytes / 1024 / 1024} MiB in total, as object and as text. To get the result, use execute_tool or a smaller batch, unless the call must not run twice.`,
    { server },
  )

/** A server's error unchanged (its code is a number), or Toolway's own error with its string code. */
function batchError(thrown: unknown): object {
  if (thrown instanceof ServerError) return thrown.error.exact
  const { data, message } = ToolwayError.from(thrown)
  return { ...data, message }
}

const executeToolInput = z.object({
  agent_id: agentId,
  ...nestedCallFields,
  timeout_ms: timeoutArgument.describe('Timeout for the call.'),
})

interface CallTool extends Pick<ToolOptions<z.ZodObject>, 'name' | 'title' | 'description' | 'annotations'> {
  /** Refuses tools that are not known to be read-only. */
  readonly onlyReads?: true
}

/** A tool that runs one tool of a server. */
const oneCallTool = ({ access, asAgent }: MetaToolsOptions, { onlyReads, ...described }: CallTool): Tool =>
  defineTool({
    ...described,
    input: executeToolInput,
    timeoutMs: outerTimeoutMs,
    carries: true,
    run: ({ agent_id, timeout_ms, server, tool }, { call }) =>
      runNestedCall(
        access,
        call,
        { server, tool, args: call.input.arguments.member('args') },
        {
          caller: asAgent(call, agent_id),
          timeoutMs: timeout_ms || undefined,
          meta: call.input.meta,
          rest: call.input.rest,
          runsPrograms: true,
          onlyReads,
          resultShare: call.resultShare,
        },
      ),
  })

export const executeTool = (options: MetaToolsOptions): Tool =>
  oneCallTool(options, {
    name: 'execute_tool',
    title: 'Execute a tool',
    description:
      "Runs one tool on one server and returns its result unchanged. The inputSchema describes the tool's arguments: get it " +
      'from get_server_tools or find_tool(detail: "full"). For several calls at once, use execute_tools.',
  })

/** Like `execute_tool`, but clients may approve it automatically, because it changes nothing (W6). */
export const callReadTool = (options: MetaToolsOptions): Tool =>
  oneCallTool(options, {
    name: 'call_read_tool',
    title: 'Call a tool that only reads',
    description: 'Like execute_tool, for tools that only read (readOnly in find_tool). Refuses all others.',
    annotations: { readOnlyHint: true, openWorldHint: true },
    onlyReads: true,
  })

export const callWriteTool = (options: MetaToolsOptions): Tool =>
  oneCallTool(options, {
    name: 'call_write_tool',
    title: 'Call a tool that may change something',
    description: 'Like execute_tool, for tools that may change something. People may have to approve it.',
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  })
