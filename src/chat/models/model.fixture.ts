import { onTestFinished } from 'vitest'
import { createManualClock, type ManualClock } from '../../../tests/fixtures/clock.ts'
import { createKeptLog, type KeptLog } from '../../../tests/fixtures/log.ts'
import type { ChatMessage } from '../../core/chat.ts'
import type { Model } from './model.ts'
import { OpenAIModel, type OpenAIModelOptions } from './openai/openai-model.ts'
import { type ModelServer, modelServer, type Reply } from './server.fixture.ts'

export const key = 'sk-very-secret-key'

export const timeouts = { total: 60_000, step: 20_000, chunk: 5_000 }

export const hello: readonly ChatMessage[] = [{ role: 'user', content: 'Hello?' }]

export interface Served {
  readonly server: ModelServer
  readonly model: Model
  readonly clock: ManualClock
  readonly log: KeptLog
}

/** A model on a server that replies by script; both end with the test. */
export async function serving(
  replies: readonly Reply[],
  changes: Partial<OpenAIModelOptions['config']> = {},
  suffix = '',
): Promise<Served> {
  const server = await modelServer(...replies)
  const clock = createManualClock()
  const log = createKeptLog()
  const config = {
    baseUrl: server.baseUrl + suffix,
    model: 'qwen3',
    apiKey: key,
    constraint: 'auto' as const,
    timeouts,
    ...changes,
  }
  const model = new OpenAIModel({ name: 'local', config, clock, log })
  onTestFinished(async () => {
    await model[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  return { server, model, clock, log }
}

/** A signal that is never aborted. */
export const patient = (): AbortSignal => new AbortController().signal

/** What a promise fails with. */
export async function failure(
  work: Promise<unknown>,
): Promise<Error & { readonly code?: string; readonly details?: Record<string, unknown> }> {
  try {
    await work
  } catch (error) {
    return error as Error
  }
  throw new Error('it did not fail')
}
