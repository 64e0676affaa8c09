import type { Tool } from '../define-tool.ts'
import { generateTool, visionTool } from './generate.ts'
import { diffusionTool, speechTool } from './media.ts'
import { choiceFor, type InferenceOptions } from './models.ts'

const toolsByTask = { generate: generateTool, vision: visionTool, speech: speechTool, diffusion: diffusionTool }

/** The tools that use the configured models (F17). Omits tools for which there is no model. */
export const inferenceTools = (options: InferenceOptions): Tool[] =>
  (['generate', 'vision', 'speech', 'diffusion'] as const).flatMap((task) => {
    const choice = choiceFor(task, options)
    return choice.names.length === 0 ? [] : toolsByTask[task](options, choice)
  })
