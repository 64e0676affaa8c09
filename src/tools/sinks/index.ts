import { createHash, hash, randomUUID } from 'node:crypto'
import * as z from 'zod'
import type { Config } from '../../config/schema.ts'
import type { Access } from '../../core/access.ts'
import { ownerKey } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { endWith } from '../../core/deadline.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { type Result, type ResultBody, resultOf, structuredResult } from '../../core/result.ts'
import type { TtlStore } from '../../core/stores.ts'
import { canonical } from '../../json/canonical-json.ts'
import { Json } from '../../json/json.ts'
import { jsonValue } from '../../json/parse-json.ts'
import { withoutHidden } from '../../lib/characters.ts'
import { setBounded } from '../../lib/memoize.ts'
import type { Seal } from '../../lib/seal.ts'
import { defineTool, type Tool, type ToolContext } from '../define-tool.ts'
import { createFileSink } from './file.ts'
import type { Artifact, Pointer, Sink } from './sink.ts'
import { fillAll } from './template.ts'
import { createWebhookSink } from './webhook.ts'

export interface SinksOptions {
  readonly sinks: Config['sinks']
  readonly custom?: readonly Sink[]
  readonly access: Access
  /** Set if several processes serve as one. */
  readonly shared?: SharedWrites | undefined
  readonly clock: Clock
  readonly log: Log
  /** Prints to standard output. Absent if standard output carries protocol messages to a client. */
  readonly stdout?: (text: string) => Promise<void> | void
}

/** The sinks from a configuration and its plugins, as tools in the source `sink` (J4). */
export function createSinks(options: SinksOptions): Tool[] {
  const { sinks, custom = [], shared, clock } = options
  const configured = Object.entries(sinks).flatMap(([name, config]) => {
    const sink = config.disabled ? undefined : sinkOf(name, config, options)
    return sink ? [{ ...sink, description: config.description ?? aboutKind[config.kind] }] : []
  })
  const twice = custom.find(({ name }) => Object.hasOwn(sinks, name))
  if (twice) {
    const sentence = `There are two sinks named "${twice.name}": one in the configuration and one in a plugin. Rename one of them.`
    throw new ToolwayError('INTERNAL', sentence)
  }
  return [...configured, ...custom].map((sink) => sinkTool(sink, clock, shared))
}

type SinkConfig = Config['sinks'][string]

const aboutKind: Readonly<Record<SinkConfig['kind'], string>> = {
  file: 'Stores text in a file.',
  webhook: 'Sends text to another system.',
  stdout: "Prints text on the operator's terminal.",
  tool: 'Stores text with another tool.',
}

function sinkOf(name: string, config: SinkConfig, options: SinksOptions): Omit<Sink, 'description'> | undefined {
  const { access, clock, log, stdout } = options
  switch (config.kind) {
    case 'file':
      return createFileSink(name, config)
    case 'webhook':
      return createWebhookSink({ name, config, clock, log })
    case 'tool':
      return createToolSink(name, config, access)
    case 'stdout':
      if (stdout) return createStdoutSink(name, stdout)
      log.warn({ sink: name }, 'stdout sink is not offered, because standard output is used for MCP')
      return undefined
  }
}

/** A sink that prints artifacts. It strips terminal control sequences, because the text comes from an agent. */
const createStdoutSink = (name: string, print: (text: string) => Promise<void> | void): Omit<Sink, 'description'> => ({
  name,
  async write({ id, content }) {
    const text = withoutHidden(content, 'kept')
    await print(text.endsWith('\n') ? text : `${text}\n`)
    return { uri: `sink://${name}/${id}` }
  },
})

/** A sink that passes artifacts to a tool, as a nested call for the same caller and under the same rules. */
const createToolSink = (
  name: string,
  config: Extract<SinkConfig, { kind: 'tool' }>,
  access: Access,
): Omit<Sink, 'description'> => ({
  name,
  async write(artifact, { call, signal }) {
    const { entry } = await access.view(call.caller).resolve('tool', config.tool, { parent: call.id })
    // Refuse: a sink that writes to a sink could end up calling itself.
    if (entry.server === 'sink' || entry.traits.carries) {
      const sentence = `sinks.${name}.tool is ${entry.server}.${entry.name}, which runs other calls; the operator must name another tool.`
      throw new ToolwayError('INTERNAL', sentence)
    }
    const args = fillAll(config.arguments, artifact) as Record<string, unknown>
    const result = await access.handle({
      id: randomUUID(),
      parent: call.id,
      caller: call.caller,
      entry,
      input: { arguments: Json.of(args), meta: {} },
      signal,
      peer: call.peer,
      ...{ trace: call.trace, trail: call.trail },
    })
    if (result.isError) return result
    return { uri: uriIn(result.body.value) ?? `sink://${name}/${artifact.id}`, tool: `${entry.server}.${entry.name}` }
  },
})

function uriIn({ content = [], structuredContent }: ResultBody): string | undefined {
  const linked = content.find(({ type }) => type === 'resource_link')?.uri
  const told = linked ?? (structuredContent as { uri?: unknown } | null | undefined)?.uri
  return typeof told === 'string' && told.length <= 2_000 && URL.canParse(told) ? told : undefined
}

const maxArtifactCharacters = 16 * 1024 * 1024
const maxMetadata = 64 * 1024

/** Makes a tool from a sink: `sink.NAME(content, metadata?)` returns a permanent pointer (J4). */
function sinkTool(sink: Sink, clock: Clock, shared?: SharedWrites): Tool {
  const once = createOnce(sink.name, shared)
  return defineTool({
    name: sink.name,
    description: `${sink.description} Pass the whole content. Returns a pointer: {uri, sink, id, bytes, metadata}.`,
    input: z.object({
      content: z.string().max(maxArtifactCharacters).describe('The text to store.'),
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
      const write = () => writeArtifact(sink, artifact, context)
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

async function writeArtifact(sink: Sink, artifact: Artifact, { call, signal }: ToolContext): Promise<Result> {
  const answer = await sink.write(artifact, { call, signal })
  if ('body' in answer && answer.body instanceof Json) return answer as Result
  const { uri, ...facts } = answer as Pointer
  const { id, content, metadata, timestamp } = artifact
  const bytes = Buffer.byteLength(content)
  return structuredResult({ uri, sink: sink.name, id, bytes, timestamp, ...facts, metadata })
}

const maxRememberedWrites = 1_000
/** How long a write is shared with other processes. */
const sharedWriteMs = 24 * 3_600_000

/** Where processes that serve as one find each other's writes. The seal encrypts them, because others may read the store. */
interface SharedWrites {
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
    setBounded(known, key, { digest, answer }, maxRememberedWrites)
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
  const sealed = await ttlStore.get(key, sharedWriteMs)
  const text = sealed === undefined ? undefined : seal.open(sealed, binding)
  if (text !== undefined) {
    const { digest, body } = jsonValue(text) as SharedWrite
    own.check(digest)
    return resultOf(body)
  }
  const result = await own.write()
  const stored: SharedWrite = { digest: own.digest, body: result.body.value }
  if (!result.isError) await ttlStore.set(key, seal.close(JSON.stringify(stored), binding), sharedWriteMs)
  return result
}
