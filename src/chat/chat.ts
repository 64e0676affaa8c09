import type { Config } from '../config/schema.ts'
import type { Access } from '../core/access.ts'
import type { Chat, ChatEvent, ChatRequest } from '../core/chat.ts'
import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import { didYouMean } from '../lib/near.ts'
import { type AgentHooks, agent } from './agent-loop.ts'
import { type ArgumentCheck, compilePrompts, createChatRun } from './chat-run.ts'
import type { ClientToolState } from './client-tool-state.ts'
import { modelNames } from './models/create-models.ts'
import type { Model } from './models/model.ts'
import { staged } from './staged-loop.ts'

export interface CreateChatOptions {
  readonly access: Pick<Access, 'handle' | 'view'>
  /** By name in the configuration. The caller disposes of them. */
  readonly models: ReadonlyMap<string, Model>
  readonly config: Config['chat']
  /** Validates the arguments of a call against its tool's input schema. */
  readonly validate: ArgumentCheck
  readonly clock: Clock
  readonly log: Log
  /** Outlives this chat: clients return after a reload. */
  readonly clientToolState: ClientToolState
  readonly hooks?: AgentHooks
}

/** Answers with the staged loop or the agent loop, using any configured model. */
export function createChat(options: CreateChatOptions): Chat & AsyncDisposable {
  const { models, config, clock, log, hooks, clientToolState } = options
  const { access, validate } = options
  const around = { access, config, validate, clock, log, clientToolState, prompts: compilePrompts(config.prompts) }
  const usual = config.model ?? models.keys().next().value
  const open = new Set<AbortController>()

  return { models: names, answer, [Symbol.asyncDispose]: close }

  function names(): readonly string[] {
    return modelNames(models, config)
  }

  async function* answer(request: ChatRequest): AsyncGenerator<ChatEvent> {
    const model = pick(request.model)
    const own = new AbortController()
    open.add(own)
    const signal = AbortSignal.any([request.signal, own.signal])
    const messages = await clientToolState.restore(request.caller, request.messages)
    const run = createChatRun(around, { request, model, signal, messages })
    const loop = (request.mode ?? config.mode) === 'agent' ? agent(run, hooks) : staged(run)
    try {
      const { reason, handed = [] } = yield* loop
      yield { kind: 'end', reason, handed, usage: { ...run.usage }, model: model.name, notes: [...run.notes] }
    } catch (thrown) {
      throw failure(signal.aborted ? signal.reason : thrown, signal.aborted)
    } finally {
      open.delete(own)
      // When the client stops reading, cancel what still runs.
      own.abort(new ToolwayError('CANCELLED', 'The client stopped reading the answer.'))
    }
  }

  function pick(asked: string | undefined): Model {
    const name = asked ?? usual
    const model = name === undefined ? undefined : models.get(name)
    if (model) return model
    if (models.size === 0) {
      throw new ToolwayError('INVALID_ARGUMENTS', 'No model is configured: add one under `models`.')
    }
    const known = didYouMean(name ?? '', models.keys(), `; there are ${names().join(', ')}.`)
    throw new ToolwayError('INVALID_ARGUMENTS', `There is no model "${name}" in the configuration${known}`)
  }

  async function close(): Promise<void> {
    const over = new ToolwayError('CANCELLED', 'Toolway is stopping or reloading; try again.')
    for (const one of open) one.abort(over)
  }
}

function failure(thrown: unknown, isAborted: boolean): ToolwayError {
  if (thrown instanceof ToolwayError) return thrown
  if (!isAborted) return ToolwayError.from(thrown)
  return new ToolwayError('CANCELLED', 'The answer was cancelled.', { cause: thrown })
}
