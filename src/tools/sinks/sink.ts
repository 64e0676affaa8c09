import type { Call } from '../../core/call.ts'
import type { Result } from '../../core/result.ts'

export interface Artifact {
  /** The artifact's ID. Unique, unless a caller repeats a write with the same `metadata.id`. */
  readonly id: string
  readonly sink: string
  readonly agent: string
  readonly content: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** When the sink received the artifact, in ISO 8601. */
  readonly timestamp: string
}

export interface SinkContext {
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal
  readonly call: Call
}

export interface Pointer {
  readonly uri: string
  readonly [fact: string]: unknown
}

/** A destination for artifacts (J4); made by `defineSink` or from the configuration. */
export interface Sink {
  readonly name: string
  readonly description: string
  readonly timeoutMs?: number
  /** The name of the setting that defines `timeoutMs`, for error messages. */
  readonly timeoutKey?: string | undefined
  /** Resolves once the artifact is stored. The caller gets a `Result`, such as a tool sink's failure, unchanged. */
  write(artifact: Artifact, context: SinkContext): Promise<Pointer | Result>
}

export interface SinkOptions {
  /** The sink's name: at most 64 letters, digits, `_` and `-`. The tool is called `sink.NAME`. */
  readonly name: string
  readonly description: string
  readonly timeoutMs?: number
  /** Stores the artifact and returns its location: a URI, or an object that contains one. */
  write(artifact: Artifact, context: SinkContext): Pointer | string | Promise<Pointer | string>
}

/** Marks sinks made by `defineSink`, whichever copy of this module made them. */
const brand: unique symbol = Symbol.for('dev.toolway/sink')

/**
 * Makes a sink out of a function. To reject, throw a `ToolwayError` whose message tells a model what to do.
 *
 * @example
 * ```ts
 * export default defineSink({
 *   name: 'wiki',
 *   description: 'Pages of our wiki.',
 *   async write({ id, content, metadata }, { signal }) {
 *     const page = await wiki.create({ title: String(metadata.title ?? id), content, signal })
 *     return page.url
 *   },
 * })
 * ```
 */
export function defineSink({ name, description, timeoutMs, write }: SinkOptions): Sink {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(`Invalid sink name "${name}": use up to 64 letters, digits, "_" and "-".`)
  }
  const sink: Sink & { [brand]: true } = {
    name,
    description,
    timeoutMs,
    async write(artifact, context) {
      const written = await write(artifact, context)
      const pointer = typeof written === 'string' ? { uri: written } : written
      if (typeof pointer?.uri === 'string' && pointer.uri !== '') return pointer
      throw new TypeError(`the sink ${name} did not return the artifact's URI`)
    },
    [brand]: true,
  }
  return sink
}

export const isSink = (value: unknown): value is Sink => typeof value === 'object' && value !== null && brand in value
