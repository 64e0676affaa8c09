import * as z from 'zod'
import { defineTool, type Tool } from './define-tool.ts'

/** A tool that gives back what it got. */
export const echo = (name: string, description = `Echoes as ${name}.`): Tool =>
  defineTool({ name, description, input: z.looseObject({}), run: (args) => ({ name, args }) })

/** `count` tools of growing size. */
export const numbered = (count: number): Tool[] =>
  Array.from({ length: count }, (_, index) => echo(`tool_${index}`, 'word '.repeat(index * 3)))
