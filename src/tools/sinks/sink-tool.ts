import { createHash, hash, randomUUID } from 'node:crypto'
import * as z from 'zod'
import { ownerKey } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { endWith } from '../../core/deadline.ts'
import { invalidArguments } from '../../core/errors.ts'
import { type Result, type ResultBody, resultOf, structuredResult } from '../../core/result.ts'
import type { TtlStore } from '../../core/stores.ts'
import { canonical } from '../../json/canonical-json.ts'
import { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { setBounded } from '../../lib/memoize.ts'
import type { Seal } from '../../lib/seal.ts'
import { defineTool, type Tool, type ToolContext } from '../define-tool.ts'
import type { Artifact, Pointer, Sink } from './sink.ts'

const maxCharacters = 16 * 1024 * 1024
const maxMetadata = 64 * 1024

/** Makes a tool from a sink: `sink.NAME(content, metadata?)` returns a permanent pointer (J4). */
export function sinkTool(sink: Sink, clock: Clock, shared?: SharedWrites): Tool {
  const once = createOnce(sink.name, shared)
  return defineTool({
    name: sink.name,
    description: `${sink.description} Pass the whole content. Returns a pointer: {uri, sink, id, bytes, metadata}.`,
    input: z.object({
      content: z.string().max(maxCharacters).describe('The text to store.'),
      metadata: z
        .record(z.string(), z.unknown())
        .default({})
        .describe('Metadata to store with the content. To make retries safe, set metadata.id to an ID of your choice.'),
    }),
    annotations: { readOnlyHint: false, destructiveHint: false },
    timeoutMs: sink.timeoutMs,
    timeoutKey: sink.timeoutKey,
    run({ content, metadata }, context) {
      if (JSON.stringify(metadata).length > maxMetadata)
        throw invalidArguments('"metadata" is longer than 64 KiB; put it into the content.')
      const own = idIn(metadata)
      const { agent } = context.caller
      const timestamp = new Date(clock.now()).toISOString()
      const artifact = { id: own ?? randomUUID(), sink: sink.name, agent, content, metadata, timestamp }
      const write = () => written(sink, artifact, context)
      return own === undefined
        ? write()
        : once(ownerKey(context.caller), own, digestOf(content, metadata), context.signal, write)
    },
  })
}

/** Identifies what is written under an ID. Metadata without any other member than the ID does not count. */
function digestOf(content: string, { id: _, ...metadata }: Readonly<Record<string, unknown>>): string {
  const digest = createHash('sha256').update(content)
  if (Object.keys(metadata).length > 0) digest.update(`\0${canonical(metadata)}`)
  return digest.digest('base64')
}

/** The ID that the caller chose. Its characters are restricted, because it becomes part of file names and headers. */
function idIn({ id }: Readonly<Record<string, unknown>>): string | undefined {
  if (id === undefined) return undefined
  if (typeof id === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id)) return id
  throw invalidArguments(
    '"metadata.id" must have at most 128 letters, digits, ".", "_" and "-", and start with a letter or digit.',
  )
}

async function written(sink: Sink, artifact: Artifact, { call, signal }: ToolContext): Promise<Result> {
  const answer = await sink.write(artifact, { call, signal })
  if ('body' in answer && answer.body instanceof Json) return answer as Result
  const { uri, ...facts } = answer as Pointer
  const { id, content, metadata, timestamp } = artifact
  const bytes = Buffer.byteLength(content)
  return structuredResult({ uri, sink: sink.name, id, bytes, timestamp, ...facts, metadata })
}

const maxRemembered = 1_000
/** How long a write is shared with other processes. */
const sharedMs = 24 * 3_600_000

/** Where processes that serve as one find each other's writes. The seal encrypts them, because others may read the store. */
export interface SharedWrites {
  readonly ttlStore: TtlStore
  readonly seal: Seal
}

interface SharedWrite {
  readonly digest: string
  readonly body: ResultBody
}

/**
 * Makes writes with an ID idempotent: a retry gets the first write's result, unless that write failed. With a shared
 * store, a retry may reach another process, if that process gets it after the first write has ended.
 */
function createOnce(sink: string, shared: SharedWrites | undefined) {
  const known = new Map<string, { readonly digest: string; readonly answer: Promise<Result> }>()
  return (owner: string, id: string, digest: string, signal: AbortSignal, write: () => Promise<Result>) => {
    const key = `${owner}\n${id}`
    const before = known.get(key)
    const check = (stored: string) => {
      if (stored === digest) return
      throw invalidArguments(
        `Different content or metadata was already stored with the id ${id}; use another metadata.id.`,
      )
    }
    if (before) {
      check(before.digest)
      return endWith(signal, before.answer)
    }
    const answer = shared ? writeShared(shared, JSON.stringify(['sink', sink, key]), { digest, check, write }) : write()
    setBounded(known, key, { digest, answer }, maxRemembered)
    const forget = () => {
      if (known.get(key)?.answer === answer) known.delete(key)
    }
    answer.then(({ isError }) => isError && forget(), forget)
    return answer
  }
}

async function writeShared(
  { ttlStore, seal }: SharedWrites,
  binding: string,
  own: { readonly digest: string; check(stored: string): void; write(): Promise<Result> },
): Promise<Result> {
  const key = `sink:${hash('sha256', binding)}`
  const sealed = await ttlStore.get(key, sharedMs)
  const text = sealed === undefined ? undefined : seal.open(sealed, binding)
  if (text !== undefined) {
    const { digest, body } = jsonValue(text) as SharedWrite
    own.check(digest)
    return resultOf(body)
  }
  const result = await own.write()
  const stored: SharedWrite = { digest: own.digest, body: result.body.value }
  if (!result.isError) await ttlStore.set(key, seal.close(JSON.stringify(stored), binding), sharedMs)
  return result
}
