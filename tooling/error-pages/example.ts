import { silentLog } from '../../src/core/log.ts'
import { failureOf } from '../../src/serve/errors.ts'
import { type Trial, thrownBy } from './trial.ts'

/** An example of one failure: configuration, call and response. */
export interface Example {
  readonly config?: string
  /** `server.tool`, with its arguments where they matter. */
  readonly call: string
  /** Additional circumstances. */
  readonly circumstances?: string | undefined
  /** The whole response, as the caller gets it. */
  readonly answer: object
}

/** Why callers never receive this error. */
export interface NoExample {
  readonly none: string
}

/** The example of a call that goes through the pipeline. */
export async function tried(trial: Trial): Promise<Example> {
  const { config, server, tool, arguments: args, circumstances } = trial
  const call = `${server}.${tool}${args ? ` ${JSON.stringify(args)}` : ''}`
  const answer = answerTo(await thrownBy(trial))
  return { call, circumstances, ...(config !== undefined && { config: config.trim() }), answer }
}

/** The response to a tool call that failed with this error. */
export function answerTo(thrown: unknown): object {
  const failure = failureOf('tools/call', thrown, silentLog)
  const read = (bytes: Buffer): unknown => JSON.parse(bytes.toString('utf8'))
  if ('result' in failure) return { result: read(failure.result) }
  return { error: Buffer.isBuffer(failure.error) ? read(failure.error) : failure.error }
}
