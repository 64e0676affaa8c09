import * as z from 'zod'
import { path } from './values.ts'

const builtIn = ['hash', 'time', 'fetch', 'generate', 'vision', 'speech', 'diffusion', 'execute_code'] as const

/** Tools of our own. */
export const nativeSection = z.strictObject({
  tools: z
    .array(z.enum(builtIn))
    .default([...builtIn])
    .describe('Built-in tools that are served.'),
  plugins: z.array(path()).default([]).describe('Modules that bring further tools.'),
})
