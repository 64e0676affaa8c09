import type { Tool } from '../define-tool.ts'
import { generateTool, visionTool } from './generate.ts'
import { diffusionTool, speechTool } from './media.ts'
import { choiceFor, type InferenceOptions } from './models.ts'

const makers = [
  ['generate', generateTool],
  ['vision', visionTool],
  ['speech', speechTool],
  ['diffusion', diffusionTool],
] as const

/** The tools that use the configured models (F17). Omits tools for which there is no model. */
export const inferenceTools = (options: InferenceOptions): Tool[] =>
  makers.flatMap(([task, make]) => {
    const choice = choiceFor(task, options)
    return choice.names.length === 0 ? [] : make(options, choice)
  })
