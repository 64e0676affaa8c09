import type { Call } from '../../core/call.ts'
import type { Result } from '../../core/result.ts'

/** Something that an agent has made and wants to keep. */
export interface Artifact {
  /** Unique; the same again where somebody writes the same thing again and says so with `metadata.id`. */
  readonly id: string
  readonly sink: string
  readonly agent: string
  readonly content: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** When it was handed over, in ISO 8601. */
  readonly timestamp: string
}

export interface SinkContext {
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal
  readonly call: Call
}

/** Where an artifact is from now on, and what else there is to say about it. */
export interface Pointer {
  readonly uri: string
  readonly [fact: string]: unknown
}

/** A destination for what agents produce (J4); made by `defineSink`, or by the configuration. */
export interface Sink {
  readonly name: string
  readonly description: string
  readonly timeoutMs?: number
  /** The setting that it comes from. */
  readonly timeoutKey?: string | undefined
  /** Settles when the artifact is kept. A result is an answer of its own, such as the failure of a tool behind it. */
  write(artifact: Artifact, context: SinkContext): Promise<Pointer | Result>
}

export interface SinkOptions {
  /** Up to 64 of `[A-Za-z0-9_-]`; it is called as `sink.NAME`. */
  readonly name: string
  /** What it is for, for a model. */
  readonly description: string
  readonly timeoutMs?: number
  /** Keeps the artifact and says where: a URI, or an object with one. */
  write(artifact: Artifact, context: SinkContext): Pointer | string | Promise<Pointer | string>
}

/** Marks what `defineSink` made, whichever copy of this module did it. */
const brand: unique symbol = Symbol.for('dev.toolway/sink')

/**
 * Makes a sink out of a function. To refuse, throw a `ToolwayError` whose sentence tells a model what to do.
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
    throw new TypeError(`A sink cannot be named "${name}": up to 64 letters, digits, "_" and "-".`)
  }
  const sink: Sink & { [brand]: true } = {
    name,
    description,
    ...(timeoutMs !== undefined && { timeoutMs }),
    async write(artifact, context) {
      const written = await write(artifact, context)
      const pointer = typeof written === 'string' ? { uri: written } : written
      if (typeof pointer?.uri === 'string' && pointer.uri !== '') return pointer
      throw new TypeError(`the sink ${name} did not say where it has put the artifact`)
    },
    [brand]: true,
  }
  return sink
}

export const isSink = (value: unknown): value is Sink => typeof value === 'object' && value !== null && brand in value
