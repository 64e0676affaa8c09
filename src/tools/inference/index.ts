import type { Tool } from '../define-tool.ts'
import { diffusionTool } from './diffusion.ts'
import { generateTool, visionTool } from './generate.ts'
import type { InferenceOptions } from './models.ts'
import { speechTool } from './speech.ts'

export type { InferenceOptions } from './models.ts'

/** The tools that use the configured models (F17). Omits tools for which there is no model. */
export const inferenceTools = (options: InferenceOptions): Tool[] =>
  [generateTool, visionTool, speechTool, diffusionTool].flatMap((make) => make(options) ?? [])
