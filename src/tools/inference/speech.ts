import * as z from 'zod'
import { invalidArguments } from '../../core/errors.ts'
import { type Result, resultOf } from '../../core/result.ts'
import { parseJson } from '../../json/parse-json.ts'
import { asRecord } from '../../lib/is-record.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { sniffedType } from '../media-type.ts'
import { noAnswer, postTask, postTaskJson } from './model-server.ts'
import { bytesFrom, choiceFor, type InferenceOptions, inferenceTraits, modelArgument, modelTask } from './models.ts'

/** Converts text to speech, and speech to text (F17). Undefined if no speech model is configured. */
export function speechTool(options: InferenceOptions): Tool | undefined {
  const speakers = choiceFor('speech', options)
  const writers = choiceFor('transcription', options)
  if (speakers.names.length === 0) return undefined
  const { maxBytes } = options.config.native.inference
  return defineTool({
    name: 'speech',
    title: 'Text to speech, or transcription',
    description: 'Converts text to spoken audio, or transcribes audio. Pass either text or audio.',
    input: z.object({
      text: z.string().min(1).max(100_000).optional().describe('The text to speak.'),
      voice: z.string().max(100).default('alloy').describe('Name of the voice, as defined by the model.'),
      format: z.enum(['mp3', 'wav', 'opus', 'flac', 'aac']).default('mp3').describe('Format of the spoken audio.'),
      speed: z.number().min(0.25).max(4).optional(),
      audio: z.string().optional().describe('The recording to transcribe, in base64.'),
      language: z.string().max(20).optional().describe('The language of the recording, such as en.'),
      model: modelArgument(speakers),
    }),
    ...inferenceTraits(options),
    run({ text, audio, ...given }, { signal }) {
      if (text !== undefined && audio === undefined) return speak(text, given, signal)
      if (audio !== undefined && text === undefined) return writeDown(audio, given, signal)
      throw invalidArguments('Pass either "text" to speak or "audio" to transcribe.')
    },
  })

  interface Wishes {
    readonly voice: string
    readonly format: string
    readonly speed?: number | undefined
    readonly language?: string | undefined
    readonly model?: string | undefined
  }

  async function speak(text: string, wishes: Wishes, signal: AbortSignal): Promise<Result> {
    const { voice, format, speed, model: asked } = wishes
    const task = modelTask(options, 'speech', speakers.pick(asked), signal)
    const body = { input: text, voice, response_format: format, speed }
    const { bytes, type } = await postTaskJson(task, '/audio/speech', body, 'audio/*', maxBytes)
    // Raw PCM has no magic bytes, so fall back to the Content-Type header.
    const mimeType = sniffedType(bytes) ?? (type.startsWith('audio/') ? type : '')
    if (bytes.length === 0 || !mimeType.startsWith('audio/')) throw noAnswer(task, 'audio')
    return resultOf({
      content: [{ type: 'audio', data: bytes.toString('base64'), mimeType }],
      structuredContent: { model: task.name, mimeType, bytes: bytes.length },
    })
  }

  async function writeDown(audio: string, { language, model: asked }: Wishes, signal: AbortSignal): Promise<Result> {
    const { bytes, mimeType } = bytesFrom('audio', audio, 'audio', maxBytes)
    const task = modelTask(options, 'transcription', writers.pick(asked), signal)
    const form = new FormData()
    form.set('model', task.model.model)
    form.set('response_format', 'json')
    if (language !== undefined) form.set('language', language)
    form.set('file', new Blob([bytes as Buffer<ArrayBuffer>], { type: mimeType }), `audio.${endingOf(mimeType)}`)
    const encoded = new Response(form)
    const body = Buffer.from(await encoded.arrayBuffer())
    const contentType = encoded.headers.get('content-type') as string
    const request = { path: '/audio/transcriptions', body, contentType, accept: 'application/json' }
    const answer = await postTask(task, request, maxBytes)
    const { text } = asRecord(parseJson(answer.bytes.toString('utf8')))
    if (typeof text !== 'string') throw noAnswer(task, 'text')
    return resultOf({ content: [{ type: 'text', text }], structuredContent: { model: task.name, text } })
  }
}

/** The file extension for a media type. Servers detect the format by the extension. */
const endingOf = (mimeType: string): string =>
  ({ 'audio/mpeg': 'mp3', 'audio/mp4': 'm4a' })[mimeType] ?? mimeType.slice(6)
