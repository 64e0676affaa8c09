import type { ServerConfig } from '../../config/schema.ts'
import type { ProbeFailure, ProbeResult } from '../../runtime/probe-server.ts'

/** A server that was tried, and what is needed to say what to do about it. */
export interface ProbedServer {
  readonly name: string
  readonly config: ServerConfig
  readonly examination: ProbeResult
  readonly withinMs: number
  /** The environment of whoever asks: servers get little of it. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** One that failed. */
export interface FailedProbe<Config extends ServerConfig = ServerConfig> extends ProbedServer {
  readonly config: Config
  readonly failure: ProbeFailure
}

/** Why it failed and what to do. */
export interface Diagnosis {
  readonly message: string
  readonly remedy: string
}

/** A server that is a program of ours, and one that is called over HTTP. */
export type StdioServer = Extract<ServerConfig, { transport: 'stdio' }>
export type RemoteServer = Exclude<ServerConfig, { transport: 'stdio' }>

/** Knows one cause; undefined where it is another. */
export type RecogniseCause<Config extends ServerConfig> = (failed: FailedProbe<Config>) => Diagnosis | undefined

/** The first cause that fits; the last of each list fits every failure. */
export function diagnose<Config extends ServerConfig>(
  causes: readonly RecogniseCause<Config>[],
  failed: FailedProbe<Config>,
): Diagnosis {
  for (const recognise of causes) {
    const known = recognise(failed)
    if (known) return known
  }
  throw new Error(`nothing is known about how ${failed.name} failed`)
}
