import * as z from 'zod'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { type Result, resultOf } from '../../core/result.ts'
import { guardedGet, readBody } from '../../egress/guarded-get.ts'
import {
  maxErrorBytes,
  modelConnectionError,
  modelCredentials,
  modelRefusalError,
  modelServerFailure,
  readServerMessage,
  retryDelayMs,
} from '../../egress/model-server.ts'
import { parseJson } from '../../json/parse-json.ts'
import { asRecord } from '../../lib/is-record.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { sniffedType } from '../media-type.ts'
import {
  bytesFrom,
  choiceFor,
  type InferenceOptions,
  inferenceTraits,
  type ModelChoice,
  modelArgument,
  type ServedModel,
} from './models.ts'

/** Converts text to speech, and speech to text (F17). */
export function speechTool(options: InferenceOptions, speakers: ModelChoice): Tool {
  const writers = choiceFor('transcription', options)
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
    run({ text, audio, voice, format, speed, language, model }, { signal }) {
      if (text !== undefined && audio === undefined)
        return speak(modelTask(options, speakers, model, signal), {
          input: text,
          voice,
          response_format: format,
          speed,
        })
      if (audio === undefined || text !== undefined)
        throw invalidArguments('Pass either "text" to speak or "audio" to transcribe.')
      const recording = bytesFrom('audio', audio, 'audio', maxBytes)
      return transcribe(modelTask(options, writers, model, signal), recording, language)
    },
  })

  async function speak(task: ModelTask, request: object): Promise<Result> {
    const { bytes, type } = await postJson(task, '/audio/speech', request, 'audio/*', maxBytes)
    // Raw PCM has no magic bytes, so fall back to the Content-Type header.
    const mimeType = sniffedType(bytes) ?? (type.startsWith('audio/') ? type : '')
    if (bytes.length === 0 || !mimeType.startsWith('audio/')) throw noAnswer(task, 'audio')
    return resultOf({
      content: [{ type: 'audio', data: bytes.toString('base64'), mimeType }],
      structuredContent: { model: task.name, mimeType, bytes: bytes.length },
    })
  }

  async function transcribe(
    task: ModelTask,
    { bytes, mimeType }: ReturnType<typeof bytesFrom>,
    language: string | undefined,
  ): Promise<Result> {
    const form = new FormData()
    form.set('model', task.model.model)
    form.set('response_format', 'json')
    if (language !== undefined) form.set('language', language)
    form.set('file', new Blob([bytes as Buffer<ArrayBuffer>], { type: mimeType }), `audio.${audioExtension(mimeType)}`)
    const encoded = new Response(form)
    const body = Buffer.from(await encoded.arrayBuffer())
    const contentType = encoded.headers.get('content-type') as string
    const path = endpointPath(task, '/audio/transcriptions')
    const answer = await exchange(task, path, maxBytes, { body, contentType, accept: 'application/json' })
    const { text } = asRecord(parseJson(answer.bytes.toString('utf8')))
    if (typeof text !== 'string') throw noAnswer(task, 'text')
    return resultOf({ content: [{ type: 'text', text }], structuredContent: { model: task.name, text } })
  }
}

/** The file extension for a media type. Servers detect the format by the extension. */
const audioExtension = (mimeType: string): string =>
  ({ 'audio/mpeg': 'mp3', 'audio/mp4': 'm4a' })[mimeType] ?? mimeType.slice(6)

/** Makes images from a description (F17). */
export function diffusionTool(options: InferenceOptions, choice: ModelChoice): Tool {
  const { maxBytes } = options.config.native.inference
  return defineTool({
    name: 'diffusion',
    title: 'Generate an image',
    description: 'Generates one or more images from a description.',
    input: z.object({
      prompt: z.string().min(1).max(32_000).describe('Description of the image.'),
      size: z
        .string()
        .regex(/^\d{2,4}x\d{2,4}$/)
        .optional()
        .describe('Width and height, such as 1024x1024.'),
      n: z.int().min(1).max(4).default(1).describe('Number of images.'),
      model: modelArgument(choice),
    }),
    ...inferenceTraits(options),
    async run({ model, ...wishes }, { signal }) {
      const task = modelTask(options, choice, model, signal)
      const made = await generateImages(task, wishes)
      const images = await Promise.all(made.map((image) => imageBytes(task, image))).catch(failDownload)
      const content = images.map((bytes) => {
        const mimeType = sniffedType(bytes)
        if (!mimeType?.startsWith('image/')) throw noAnswer(task, 'images')
        return { type: 'image', data: bytes.toString('base64'), mimeType }
      })
      const sizes = content.map(({ mimeType }, index) => ({ mimeType, bytes: images[index]?.length }))
      return resultOf({ content, structuredContent: { model: task.name, images: sizes } })
    },
  })

  /** Requests images as base64. Retries without `response_format`, because some servers reject that field. */
  async function generateImages(task: ModelTask, wishes: object): Promise<readonly GeneratedImage[]> {
    try {
      return await requestImages(task, { ...wishes, response_format: 'b64_json' })
    } catch (thrown) {
      if (thrown instanceof ToolwayError && /response_format/.test(thrown.message))
        return await requestImages(task, wishes)
      throw thrown
    }
  }

  async function requestImages(task: ModelTask, wishes: object): Promise<readonly GeneratedImage[]> {
    // Base64 is a third larger than the image, and there may be several images.
    const { bytes } = await postJson(task, '/images/generations', wishes, 'application/json', maxBytes * 2)
    const read = imagesAnswer.safeParse(parseJson(bytes.toString('utf8')))
    if (!read.success) throw noAnswer(task, 'images')
    return read.data.data
  }

  /** The bytes of an image. URLs on the model server itself are trusted; others are vetted like those from a caller. */
  async function imageBytes(task: ModelTask, { b64_json, url }: GeneratedImage): Promise<Buffer> {
    if (b64_json) return Buffer.from(b64_json, 'base64')
    const { model, signal } = task
    const base = new URL(model.baseUrl)
    const target = URL.parse(url ?? '', base.origin)
    if (!target) throw noAnswer(task, 'images')
    if (target.origin === base.origin) return (await exchange(task, target.pathname + target.search, maxBytes)).bytes
    return (await guardedGet(target.href, { vet: options.vet, signal, maxBytes, accept: 'image/*' })).bytes
  }
}

/** Marks a failed download: repeating the call would generate the images again. */
function failDownload(thrown: unknown): never {
  if (!(thrown instanceof ToolwayError)) throw thrown
  throw new ToolwayError(thrown.code, thrown.message, { ...thrown.details, requestOnly: true })
}

const imagesAnswer = z.object({
  data: z
    .array(z.object({ b64_json: z.string().nullish(), url: z.string().nullish() }))
    .min(1)
    .max(16),
})

type GeneratedImage = z.output<typeof imagesAnswer>['data'][number]

/** A task for a model that a choice accepts. Use it only for tasks that need a model server. */
function modelTask(
  { config, clock }: InferenceOptions,
  choice: ModelChoice,
  asked: string | undefined,
  signal: AbortSignal,
) {
  const name = choice.pick(asked)
  return { name, task: choice.task, model: config.models[name] as ServedModel, clock, signal }
}

type ModelTask = ReturnType<typeof modelTask>

interface PostedBody {
  readonly body: Buffer
  readonly contentType: string
  readonly accept: string
}

/** Posts JSON; the server gets its own name of the model. */
function postJson(task: ModelTask, path: string, request: object, accept: string, maxBytes: number) {
  const body = Buffer.from(JSON.stringify({ model: task.model.model, ...request }))
  return exchange(task, endpointPath(task, path), maxBytes, { body, contentType: 'application/json', accept })
}

function endpointPath({ model }: ModelTask, path: string): string {
  const { pathname, search } = new URL(model.baseUrl)
  return `${pathname.replace(/\/+$/, '')}${path}${search}`
}

/**
 * Posts to the model server, or downloads from it. Does not follow redirects, because the new target would get the API
 * key. Not used for chat completions: the chat loop has its own client.
 */
async function exchange(task: ModelTask, path: string, maxBytes: number, posted?: PostedBody) {
  const { name, model, clock, signal } = task
  const url = new URL(model.baseUrl)
  const { headers, secrets } = modelCredentials(name, url, model.apiKey)
  const { createHttpClient } = await import('../../egress/http-client.ts')
  // No timeouts here: the call has its own deadline, and a model may need longer than any fixed timeout.
  const patience = { connections: 1, headersTimeout: 0, bodyTimeout: 0, allowH2: false }
  const request = posted
    ? {
        method: 'POST' as const,
        body: posted.body,
        headers: { 'content-type': posted.contentType, accept: posted.accept, ...headers },
      }
    : { method: 'GET' as const, headers }
  let begun = false
  try {
    await using client = createHttpClient(url, patience)
    const answer = await client.request({ ...request, path, signal })
    begun = true
    const header = (name: string) => String(answer.headers[name] ?? '')
    answer.body.on('error', () => {})
    const status = answer.statusCode
    const isGood = status >= 200 && status < 300
    const encoding = header('content-encoding')
    const { bytes, truncated } = await readBody(answer.body, encoding, isGood ? maxBytes : maxErrorBytes)
    if (!isGood) {
      const serverMessage = readServerMessage(truncated ? '' : bytes.toString('utf8'), secrets)
      const refusal = { status, serverMessage, retryAfterMs: retryDelayMs(header, clock.now()) }
      const unsupported = (http: string) =>
        `does not support this task (${http}). Set native.inference.${task.task} to a model that does.`
      throw modelRefusalError({ name, origin: url.origin }, refusal, unsupported)
    }
    if (truncated) {
      const advice = 'Request less, or ask the operator to raise native.inference.maxBytes.'
      throw modelServerFailure(name, `sent more than ${maxBytes} bytes. ${advice}`, { requestOnly: true })
    }
    return { type: header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? '', bytes }
  } catch (thrown) {
    signal.throwIfAborted()
    throw modelConnectionError(name, thrown, begun)
  }
}

const noAnswer = ({ name, task }: ModelTask, wanted: string): ToolwayError =>
  modelServerFailure(name, `did not return ${wanted}. Check native.inference.${task}.`, { requestOnly: true })
