import type { ServerConfig } from '../../config/schema.ts'
import type { ProbeFailure, ProbeResult } from '../../runtime/probe-server.ts'

/** A server that was tried, and what is needed to say what to do about it. */
export interface Tried {
  readonly name: string
  readonly config: ServerConfig
  readonly examination: ProbeResult
  readonly withinMs: number
  /** The environment of whoever asks: servers get little of it. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** One that failed. */
export interface Failed<Config extends ServerConfig = ServerConfig> extends Tried {
  readonly config: Config
  readonly failure: ProbeFailure
}

/** Why it failed and what to do. */
export interface Diagnosis {
  readonly message: string
  readonly remedy: string
}

/** A server that is a program of ours, and one that is called over HTTP. */
export type Program = Extract<ServerConfig, { transport: 'stdio' }>
export type Remote = Exclude<ServerConfig, { transport: 'stdio' }>

/** Knows one cause; undefined where it is another. */
export type Recognise<Config extends ServerConfig> = (failed: Failed<Config>) => Diagnosis | undefined

/** The first cause that fits; the last of each list fits every failure. */
export function diagnose<Config extends ServerConfig>(
  causes: readonly Recognise<Config>[],
  failed: Failed<Config>,
): Diagnosis {
  for (const recognise of causes) {
    const known = recognise(failed)
    if (known) return known
  }
  throw new Error(`nothing is known about how ${failed.name} failed`)
}
