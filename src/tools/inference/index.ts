import type { Tool } from '../define-tool.ts'
import { diffusion } from './diffusion.ts'
import { generate, vision } from './generate.ts'
import type { InferenceOptions } from './models.ts'
import { speech } from './speech.ts'

export type { InferenceOptions } from './models.ts'

/** The tools that use the configured models (F17). Omits tools for which there is no model. */
export const inferenceTools = (options: InferenceOptions): Tool[] =>
  [generate, vision, speech, diffusion].flatMap((make) => make(options) ?? [])
