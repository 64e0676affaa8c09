import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../../config/schema.ts'
import type { Environment } from './environment.ts'
import { traceSettings } from './settings.ts'
import type { Traces, TracesOptions } from './traces.ts'

/** The traces of a configuration, and sentences about what was asked for in vain. */
export interface ChosenTraces {
  /** Undefined where they are off. */
  readonly traces: Traces | undefined
  readonly doubts: readonly string[]
}

export interface ChooseOptions extends Omit<TracesOptions, 'settings'> {
  readonly env: Environment
  /** Those of the configuration before this one: spans that wait go on waiting where they go to the same place. */
  readonly before: Traces | undefined
}

/** Chooses by a configuration where traces go. What sends them is loaded only where some are sent. */
export async function chooseTraces(
  config: Config['telemetry']['traces'],
  { env, before, ...options }: ChooseOptions,
): Promise<ChosenTraces> {
  const { settings, doubts } = traceSettings(config, env)
  if (settings === undefined) return { traces: undefined, doubts }
  if (before && isDeepStrictEqual(before.settings, settings)) return { traces: before, doubts }
  const { openTraces } = await import('./traces.ts')
  return { traces: openTraces({ ...options, settings }), doubts }
}
