import type { ServerConfig } from '../../config/schema.ts'
import type { ProbeFailure, ProbeResult } from '../../runtime/probe-server.ts'

/** A probed server, with everything that the diagnosis needs. */
export interface ProbedServer {
  readonly name: string
  readonly config: ServerConfig
  readonly result: ProbeResult
  readonly withinMs: number
  /** The user's environment; servers get only a part of it. */
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface FailedProbe<Config extends ServerConfig = ServerConfig> extends ProbedServer {
  readonly config: Config
  readonly failure: ProbeFailure
}

export interface Diagnosis {
  readonly message: string
  readonly remedy: string
}

export type StdioServer = Extract<ServerConfig, { transport: 'stdio' }>
export type RemoteServer = Exclude<ServerConfig, { transport: 'stdio' }>

/** Recognises one cause of a failure; undefined if the failure has another cause. */
export type RecogniseCause<Config extends ServerConfig> = (failed: FailedProbe<Config>) => Diagnosis | undefined

/** Returns the diagnosis from the first cause that matches. The last cause in each list matches every failure. */
export function diagnose<Config extends ServerConfig>(
  causes: readonly RecogniseCause<Config>[],
  failed: FailedProbe<Config>,
): Diagnosis {
  for (const recognise of causes) {
    const known = recognise(failed)
    if (known) return known
  }
  throw new Error(`unknown failure of ${failed.name}`)
}
