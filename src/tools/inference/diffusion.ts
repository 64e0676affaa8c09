import * as z from 'zod'
import { ToolwayError } from '../../core/errors.ts'
import { resultOf } from '../../core/result.ts'
import { guardedGet } from '../../egress/guarded-get.ts'
import { parseJson } from '../../json/parse-json.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { sniffedType } from '../media-type.ts'
import { getFile, type ModelTask, noAnswer, postTaskJson } from './model-server.ts'
import { choiceFor, type InferenceOptions, inferenceTraits, modelArgument, modelTask } from './models.ts'

/** Makes images from a description (F17). Undefined if no model is configured. */
export function diffusionTool(options: InferenceOptions): Tool | undefined {
  const choice = choiceFor('diffusion', options)
  if (choice.names.length === 0) return undefined
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
    async run({ prompt, size, n, model: asked }, { signal }) {
      const task = modelTask(options, 'diffusion', choice.pick(asked), signal)
      const made = await request(task, { prompt, n, size })
      const images = await Promise.all(made.map((one) => bytesOf(task, one))).catch(failDownload)
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
  async function request(task: ModelTask, wishes: object): Promise<readonly Made[]> {
    try {
      return await ask(task, { ...wishes, response_format: 'b64_json' })
    } catch (thrown) {
      const isUnknown = thrown instanceof ToolwayError && /response_format/.test(thrown.message)
      if (isUnknown) return await ask(task, wishes)
      throw thrown
    }
  }

  async function ask(task: ModelTask, wishes: object): Promise<readonly Made[]> {
    // Base64 is a third larger than the image, and there may be several images.
    const { bytes } = await postTaskJson(task, '/images/generations', wishes, 'application/json', maxBytes * 2)
    const read = imagesAnswer.safeParse(parseJson(bytes.toString('utf8')))
    if (!read.success) throw noAnswer(task, 'images')
    return read.data.data
  }

  /** The bytes of an image. URLs on the model server itself are trusted; others are vetted like those from a caller. */
  async function bytesOf(task: ModelTask, { b64_json, url }: Made): Promise<Buffer> {
    if (b64_json) return Buffer.from(b64_json, 'base64')
    const { model, signal } = task
    const base = new URL(model.baseUrl)
    const target = URL.parse(url ?? '', base.origin)
    if (!target) throw noAnswer(task, 'images')
    if (target.origin === base.origin) return (await getFile(task, target, maxBytes)).bytes
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

type Made = z.output<typeof imagesAnswer>['data'][number]
