import * as z from 'zod'
import type { Config } from '../../config/schema.ts'
import type { ChatMessage } from '../../core/chat.ts'
import type { Clock } from '../../core/clock.ts'
import { invalidArguments } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Vet } from '../../egress/guarded-get.ts'
import { quote } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { sniffedType } from '../media-type.ts'

type InferenceTask = 'generate' | 'vision' | 'speech' | 'transcription' | 'diffusion'

type InferenceModelConfig = Config['models'][string]
export type ServedModel = Extract<InferenceModelConfig, { kind: 'openai' }>

export interface ModelChoice {
  readonly task: InferenceTask
  /** The models allowed for the task, the default first. Empty if the task is not available. */
  readonly names: readonly string[]
  /** Validates the requested name. Returns the default if no name was requested. */
  pick(asked: string | undefined): string
}

/** Whether a model can run a task. A model that runs in this process can only generate text. */
const canRun = (task: InferenceTask, { kind, disabled }: InferenceModelConfig) =>
  !disabled && (task === 'generate' || kind === 'openai')

const seesImages = (model: InferenceModelConfig | undefined): boolean =>
  model?.kind === 'openai' && model.vision && !model.disabled

/** Whether a tool does not run just any model: it runs none, or one is configured for its task. */
export function hasOwnModel({ models, native }: Pick<Config, 'models' | 'native'>, tool: string): boolean {
  if (tool === 'vision' && Object.values(models).some(seesImages)) return true
  if (tool === 'speech' && native.inference.transcription !== undefined) return true
  const runsModels = tool === 'generate' || tool === 'vision' || tool === 'speech' || tool === 'diffusion'
  return !runsModels || native.inference[tool] !== undefined
}

/** The models for a task. The default is the model configured for it, else the chat loop's if it is able, else the first. */
export function choiceFor(task: InferenceTask, { config, log }: InferenceOptions): ModelChoice {
  const all = Object.entries(config.models).flatMap(([name, model]) => (canRun(task, model) ? [name] : []))
  const wanted = config.native.inference[task]
  const isUsable = wanted === undefined || all.includes(wanted)
  if (!isUsable) {
    const sentence = `native.inference.${task} is not a model that supports this task; the tool is not offered`
    log.warn({ task, model: wanted }, sentence)
  }
  const seeing = task === 'vision' ? all.filter((name) => seesImages(config.models[name])) : []
  const able = seeing.length > 0 ? seeing : all
  const usual = wanted ?? (able.includes(config.chat.model ?? '') ? config.chat.model : able[0])
  const names = usual === undefined || !isUsable ? [] : [usual, ...all.filter((name) => name !== usual)]
  return {
    task,
    names,
    pick(asked = names[0]) {
      if (asked === undefined || names.length === 0)
        throw invalidArguments(`No model is configured for this task; set native.inference.${task}.`)
      if (names.includes(asked)) return asked
      const hint = didYouMean(asked, names, `; available: ${names.join(', ')}.`)
      throw invalidArguments(`There is no model ${quote(asked)} for this task${hint}`)
    },
  }
}

/** The part of a language model that these tools use. The chat loop's models implement it. */
export interface LanguageModel {
  readonly name: string
  /** Streams the response; `end` is the last event. Throws a `ToolwayError`, or the signal's reason if it aborts. */
  complete(request: InferenceCompletionRequest): AsyncIterable<CompletionEvent>
}

interface InferenceCompletionRequest {
  readonly messages: readonly ChatMessage[]
  readonly owner?: string
  readonly signal: AbortSignal
  readonly maxTokens?: number | undefined
  readonly temperature?: number | undefined
  readonly constraint?: { readonly name: string; readonly schema: AnswerSchema } | undefined
}

type CompletionEvent =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thinking' | 'call' }
  | {
      readonly kind: 'end'
      readonly reason: string
      readonly usage?: { readonly promptTokens: number; readonly completionTokens: number }
      /** Converts a value that fits the schema sent to the model into one that fits the schema given by the caller. */
      restore(value: unknown): unknown
    }

export async function completeText(model: LanguageModel, request: InferenceCompletionRequest) {
  const texts: string[] = []
  let end: Extract<CompletionEvent, { kind: 'end' }> | undefined
  for await (const event of model.complete(request)) {
    if (event.kind === 'text') texts.push(event.text)
    if (event.kind === 'end') end = event
  }
  const { reason = 'unknown', usage, restore = (value: unknown) => value } = end ?? {}
  return {
    text: texts.join(''),
    finish_reason: reason,
    usage: usage && { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens },
    restore,
  }
}

type AnswerSchema = Readonly<Record<string, unknown>>

/** The value in an answer, or a problem that completes "The answer …", such as "was cut off". */
export type ParsedAnswer = { readonly value: unknown } | { readonly problem: string }

/** Parses answers that a model wrote under a schema; `unfit` says why the schema cannot be used. */
export type AnswerParser =
  | {
      /** For `restore`, see `CompletionEvent`. `ended` means that the answer did not reach its maximum length. */
      read(text: string, restore: (value: unknown) => unknown, ended: boolean): ParsedAnswer
    }
  | { readonly unfit: string }

export interface InferenceOptions {
  readonly config: Pick<Config, 'models'> & {
    readonly chat: Pick<Config['chat'], 'model'>
    readonly native: Pick<Config['native'], 'inference'>
  }
  readonly models: ReadonlyMap<string, LanguageModel>
  /** Returns a parser for answers under a schema; by default, one that only parses JSON. */
  parser?(schema: AnswerSchema): Promise<AnswerParser>
  readonly vet: Vet
  readonly clock: Clock
  readonly log: Log
}

export const inferenceTraits = ({ config }: InferenceOptions) => ({
  readOnly: true,
  annotations: { openWorldHint: true },
  timeoutMs: config.native.inference.timeout,
  timeoutKey: 'native.inference.timeout',
})

export const modelArgument = ({ names }: ModelChoice) =>
  z
    .string()
    .optional()
    .describe(`The model: ${names.slice(0, 20).join(', ')}. Default: the first.`)

/** Decodes base64 or a `data:` URL. Detects the media type from the bytes. */
export function bytesFrom(field: string, data: string, kind: 'image' | 'audio', most: number) {
  const encoded = data.replace(/^data:[^,]{0,200};base64,/i, '').replace(/\s+/g, '')
  const refuse = (what: string) => invalidArguments(`"${field}" ${what}`)
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(encoded)) throw refuse('must be base64.')
  if (encoded.length > Math.ceil(most / 3) * 4) throw refuse(`is larger than ${most} bytes; send less.`)
  const bytes = Buffer.from(encoded, 'base64')
  const mimeType = sniffedType(bytes)
  if (mimeType?.startsWith(`${kind}/`)) return { bytes, mimeType }
  const known =
    kind === 'image' ? 'a PNG, JPEG, GIF, WebP or AVIF image' : 'audio as WAV, MP3, OGG, FLAC, AAC, MP4 or WebM'
  throw refuse(`is not ${known}.`)
}
