import * as z from 'zod'
import { invalidArguments } from '../../core/errors.ts'
import { resultOf } from '../../core/result.ts'
import { guardedGet } from '../../egress/guarded-get.ts'
import { defineTool, type Tool } from '../define-tool.ts'
import { sniffedType } from '../media-type.ts'
import { languageModel } from './generate.ts'
import { bytesFrom, choiceFor, completionOf, type InferenceOptions, inferenceTraits, modelArgument } from './models.ts'

const maxImages = 8

const image = z.strictObject({
  data: z.string().optional().describe('The image in base64.'),
  url: z.string().optional().describe('The https URL of the image, instead of data.'),
})

/** Answers questions about images (F17). Undefined if no model is configured. */
export function vision(options: InferenceOptions): Tool | undefined {
  const choice = choiceFor('vision', options)
  if (choice.names.length === 0) return undefined
  const { maxBytes } = options.config.native.inference
  return defineTool({
    name: 'vision',
    title: 'Look at images',
    description: 'Answers a question about one or more images: describe, read or compare them.',
    input: z.object({
      prompt: z.string().max(100_000).default('What is in this image?').describe('The question about the images.'),
      images: z.array(image).min(1).max(maxImages),
      max_tokens: z.int().min(1).max(1_000_000).optional(),
      model: modelArgument(choice),
    }),
    output: z.object({
      model: z.string(),
      text: z.string(),
      finish_reason: z.string(),
      usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).optional(),
    }),
    ...inferenceTraits(options),
    async run({ prompt, images, max_tokens, model: asked }, { caller, signal }) {
      const model = languageModel(options, choice, asked)
      const seen = await Promise.all(images.map((given, index) => dataUrl(given, `images[${index}]`, signal)))
      const content = [
        { type: 'text' as const, text: prompt },
        ...seen.map((url) => ({ type: 'image_url' as const, image_url: { url } })),
      ]
      const { restore: _, ...completion } = await completionOf(model, {
        messages: [{ role: 'user', content }],
        owner: caller.principal,
        signal,
        maxTokens: max_tokens,
      })
      return resultOf({
        content: [{ type: 'text', text: completion.text }],
        structuredContent: { model: model.name, ...completion },
      })
    },
  })

  /** An image as a `data:` URL. Images are fetched here, from vetted addresses: the model server never gets the URL. */
  async function dataUrl({ data, url }: z.output<typeof image>, field: string, signal: AbortSignal): Promise<string> {
    if ((data === undefined) === (url === undefined))
      throw invalidArguments(`"${field}" must have either "data" or "url".`)
    const { bytes, mimeType } =
      url === undefined
        ? bytesFrom(`${field}.data`, data as string, 'image', maxBytes)
        : await fetched(url, field, signal)
    return `data:${mimeType};base64,${bytes.toString('base64')}`
  }

  async function fetched(url: string, field: string, signal: AbortSignal) {
    const { bytes, cut, status } = await guardedGet(url, { vet: options.vet, signal, maxBytes, accept: 'image/*' })
    const mimeType = sniffedType(bytes)
    if (!cut && status < 300 && mimeType?.startsWith('image/')) return { bytes, mimeType }
    const why = cut ? 'is too large' : status < 300 ? 'is not an image' : `could not be fetched (HTTP ${status})`
    throw invalidArguments(`The content of "${field}.url" ${why}; use another image.`)
  }
}
