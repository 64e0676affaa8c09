import { createHash, randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { Clock } from '../../core/clock.ts'
import { waitFor } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import { type Result, structuredResult } from '../../core/result.ts'
import { defineTool, type Tool, type ToolContext } from '../define-tool.ts'
import type { Artifact, Pointer, Sink } from './sink.ts'

const maxCharacters = 16 * 1024 * 1024
const maxMetadata = 64 * 1024

/** A sink as a tool: `sink.NAME(content, metadata?)` returns a permanent pointer (J4). */
export function sinkTool(sink: Sink, clock: Clock): Tool {
  const once = createOnce()
  return defineTool({
    name: sink.name,
    description: `${sink.description} Give it the whole content; it answers with a pointer: {uri, sink, id, bytes, metadata}.`,
    input: z.object({
      content: z.string().max(maxCharacters).describe('What to keep.'),
      metadata: z
        .record(z.string(), z.unknown())
        .default({})
        .describe(
          'Anything to keep with it. Whoever may have to write it again gives an id of its own as metadata.id.',
        ),
    }),
    annotations: { readOnlyHint: false, destructiveHint: false },
    ...(sink.timeoutMs !== undefined && { timeoutMs: sink.timeoutMs, timeoutKey: sink.timeoutKey }),
    run({ content, metadata }, context) {
      if (JSON.stringify(metadata).length > maxMetadata) {
        throw new ToolwayError('INVALID_ARGUMENTS', '"metadata" is longer than 64 KiB; put it into the content.')
      }
      const own = idIn(metadata)
      const { agent, principal } = context.caller
      const timestamp = new Date(clock.now()).toISOString()
      const artifact = { id: own ?? randomUUID(), sink: sink.name, agent, content, metadata, timestamp }
      const write = () => written(sink, artifact, context)
      return own === undefined ? write() : once.run(`${principal}\n${agent}`, own, content, context.signal, write)
    },
  })
}

/** The caller's id. Restricted, because it becomes part of file names and headers. */
function idIn({ id }: Readonly<Record<string, unknown>>): string | undefined {
  if (id === undefined) return undefined
  if (typeof id === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id)) return id
  throw new ToolwayError(
    'INVALID_ARGUMENTS',
    '"metadata.id" must be up to 128 letters, digits, ".", "_" and "-", beginning with a letter or digit.',
  )
}

async function written(sink: Sink, artifact: Artifact, { call, signal }: ToolContext): Promise<Result> {
  const answer = await sink.write(artifact, { call, signal })
  if ('body' in answer && answer.body instanceof Json) return answer as Result
  const { uri, ...facts } = answer as Pointer
  const { id, content, metadata, timestamp } = artifact
  return structuredResult({
    uri,
    sink: sink.name,
    id,
    bytes: Buffer.byteLength(content),
    timestamp,
    ...facts,
    metadata,
  })
}

/** Makes writes with an id idempotent: a retry gets the first result. */
interface Once {
  run(owner: string, id: string, content: string, signal: AbortSignal, write: () => Promise<Result>): Promise<Result>
}

interface Known {
  readonly digest: string
  readonly answer: Promise<Result>
}

/** Failed writes are removed, so that they can be retried. */
function createOnce(most = 1_000): Once {
  const known = new Map<string, Known>()
  return {
    run(owner, id, content, signal, write) {
      const key = `${owner}\n${id}`
      const digest = createHash('sha256').update(content).digest('base64')
      const before = known.get(key)
      if (before && before.digest !== digest) {
        throw new ToolwayError(
          'INVALID_ARGUMENTS',
          `Something else was written under the id ${id} before; give this another metadata.id.`,
        )
      }
      if (before) return waitFor(before.answer, signal)
      const answer = write()
      known.set(key, { digest, answer })
      if (known.size > most) known.delete(known.keys().next().value as string)
      const forget = () => {
        if (known.get(key)?.answer === answer) known.delete(key)
      }
      answer.then(({ isError }) => isError && forget(), forget)
      return answer
    },
  }
}
