import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { ToolwayError } from '../../core/errors.ts'
import { type Result, resultOf } from '../../core/result.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { sniffedType } from '../media-type.ts'
import { type ModelTask, noAnswer, post } from './model-server.ts'
import { bytesFrom, choiceFor, type InferenceOptions, modelArgument, servedModel } from './models.ts'

/** Text to speech, and speech to text (F17). */
export function speech(options: InferenceOptions): Tool | undefined {
  const speakers = choiceFor('speech', options)
  const writers = choiceFor('transcription', options)
  if (speakers.names.length === 0) return undefined
  const { timeout, maxBytes } = options.config.native.inference
  return defineTool({
    name: 'speech',
    title: 'Speak, or write down',
    description:
      'Turns a text into spoken audio; or, given audio instead of a text, writes down what is said in it. Give either ' +
      'text or audio.',
    input: z.object({
      text: z.string().min(1).max(100_000).optional().describe('What to say.'),
      voice: z.string().max(100).default('alloy').describe('Which voice, as the model names them.'),
      format: z.enum(['mp3', 'wav', 'opus', 'flac', 'aac']).default('mp3').describe('How to encode what is said.'),
      speed: z.number().min(0.25).max(4).optional(),
      audio: z.string().optional().describe('A recording in base64, to be written down.'),
      language: z.string().max(20).optional().describe('The language of the recording, such as en.'),
      model: modelArgument(speakers),
    }),
    readOnly: true,
    annotations: { openWorldHint: true },
    timeoutMs: timeout,
    timeoutKey: 'native.inference.timeout',
    run({ text, audio, ...given }, { signal }) {
      if (text !== undefined && audio === undefined) return speak(text, given, signal)
      if (audio !== undefined && text === undefined) return writeDown(audio, given, signal)
      throw new ToolwayError('INVALID_ARGUMENTS', 'Give either "text" to be spoken or "audio" to be written down.')
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
    const place: ModelTask = { name: speakers.pick(asked), task: 'speech' }
    const model = servedModel(options, place.name)
    const body = { model: model.model, input: text, voice, response_format: format, ...(speed && { speed }) }
    const { bytes, type } = await post(place, model, {
      path: '/audio/speech',
      body: Buffer.from(JSON.stringify(body)),
      contentType: 'application/json',
      accept: 'audio/*',
      maxBytes,
      signal,
    })
    // Raw PCM has no magic bytes, so trust the header.
    const mimeType = sniffedType(bytes) ?? (type.startsWith('audio/') ? type : '')
    if (bytes.length === 0 || !mimeType.startsWith('audio/')) throw noAnswer(place, 'audio')
    return resultOf({
      content: [{ type: 'audio', data: bytes.toString('base64'), mimeType }],
      structuredContent: { model: place.name, mimeType, bytes: bytes.length },
    })
  }

  async function writeDown(audio: string, { language, model: asked }: Wishes, signal: AbortSignal): Promise<Result> {
    const { bytes, mimeType } = bytesFrom('audio', audio, 'audio', maxBytes)
    const place: ModelTask = { name: writers.pick(asked), task: 'transcription' }
    const model = servedModel(options, place.name)
    const fields = { model: model.model, response_format: 'json', ...(language !== undefined && { language }) }
    const answer = await post(place, model, {
      path: '/audio/transcriptions',
      ...formOf(fields, { name: 'file', fileName: `audio.${endingOf(mimeType)}`, mimeType, bytes }),
      accept: 'application/json',
      maxBytes,
      signal,
    })
    const text = textIn(answer.bytes)
    if (text === undefined) throw noAnswer(place, 'a text')
    return resultOf({ content: [{ type: 'text', text }], structuredContent: { model: place.name, text } })
  }
}

/** Servers detect the format by the file extension. */
const endingOf = (mimeType: string): string =>
  ({ 'audio/mpeg': 'mp3', 'audio/mp4': 'm4a' })[mimeType] ?? mimeType.slice(6)

function textIn(bytes: Buffer): string | undefined {
  try {
    const { text } = JSON.parse(bytes.toString('utf8')) as { text?: unknown }
    return typeof text === 'string' ? text : undefined
  } catch {
    return undefined
  }
}

interface FormFile {
  readonly name: string
  readonly fileName: string
  readonly mimeType: string
  readonly bytes: Buffer
}

/** A multipart form with one file. Names are ours; a value cannot contain the random boundary. */
function formOf(fields: Readonly<Record<string, string>>, file: FormFile) {
  const boundary = `toolway-${randomUUID()}`
  const head = (name: string, more = '') => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n`
  const texts = Object.entries(fields).map(([name, value]) => `${head(name)}\r\n${value}\r\n`)
  const begin = `${head(file.name, `; filename="${file.fileName}"`)}content-type: ${file.mimeType}\r\n\r\n`
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([Buffer.from(texts.join('') + begin), file.bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
  }
}
