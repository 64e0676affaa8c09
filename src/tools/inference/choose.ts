import type { Config } from '../../config/schema.ts'
import { ToolwayError } from '../../core/errors.ts'
import { didYouMean } from '../../lib/near.ts'
import type { InferenceOptions } from './options.ts'

/** What a model is wanted for. */
export type Task = 'generate' | 'vision' | 'speech' | 'transcription' | 'diffusion'

export type ModelConfig = Config['models'][string]
export type ServedModel = Extract<ModelConfig, { kind: 'openai' }>

/** The models for one task. */
export interface Choice {
  /** Those that may be asked for, the usual one first; none where the task cannot be done. */
  readonly names: readonly string[]
  /** The name of the one asked for, or of the usual one. */
  pick(asked: string | undefined): string
}

/** Model files in process write text and nothing else. */
const fits = (task: Task, { kind, disabled }: ModelConfig) => !disabled && (task === 'generate' || kind === 'openai')

/** Which models a task can use: the one that was named for it, that of the chat loop, or the first. */
export function choiceFor(task: Task, { config, log }: InferenceOptions): Choice {
  const all = Object.entries(config.models).flatMap(([name, model]) => (fits(task, model) ? [name] : []))
  const wanted = config.native.inference[task]
  if (wanted !== undefined && !all.includes(wanted)) {
    log.warn({ task, model: wanted }, `native.inference.${task} names no model that can do this; it is left out`)
    return { names: [], pick: none }
  }
  const usual = wanted ?? (all.includes(config.chat.model ?? '') ? config.chat.model : all[0])
  const names = usual === undefined ? [] : [usual, ...all.filter((name) => name !== usual)]
  return { names, pick }

  function pick(asked: string | undefined): string {
    const name = asked ?? usual
    if (name !== undefined && names.includes(name)) return name
    if (names.length === 0) return none()
    const hint = didYouMean(name ?? '', names, `; there are ${names.join(', ')}.`)
    throw new ToolwayError('INVALID_ARGUMENTS', `There is no model "${(name ?? '').slice(0, 100)}" for this${hint}`)
  }

  function none(): never {
    throw new ToolwayError('INVALID_ARGUMENTS', `No model is configured for this: see native.inference.${task}.`)
  }
}

/** The model that a choice has found, where a server runs it. */
export const servedModel = ({ config }: InferenceOptions, name: string): ServedModel =>
  config.models[name] as ServedModel
