import * as z from 'zod'
import { flag, limit, names, path, size, text } from './values.ts'

const builtIn = ['hash', 'time', 'fetch', 'generate', 'vision', 'speech', 'diffusion', 'execute_code'] as const

const fetch = z.strictObject({
  maxBytes: size().prefault('1MiB').describe('Most bytes of a page or image that are read.'),
  timeout: limit().prefault('20s').describe('Time limit of one fetch.'),
  allowPrivate: flag().prefault(false).describe('Lets it reach loopback and private networks, too.'),
})

const model = () => text('the name of a model in the section models').optional()

const inference = z.strictObject({
  generate: model().describe('Model that generate uses; chat.model otherwise.'),
  vision: model().describe('Model that vision uses.'),
  speech: model().describe('Model that speaks.'),
  transcription: model().describe('Model that writes down what was spoken.'),
  diffusion: model().describe('Model that makes images.'),
  timeout: limit().prefault('5m').describe('Time limit of one answer.'),
  maxBytes: size().prefault('16MiB').describe('Most bytes of audio or images, in or out.'),
})

export const nativeSection = z.strictObject({
  tools: z
    .array(z.enum(builtIn))
    .default([...builtIn])
    .describe('Built-in tools that are served.'),
  fetch: fetch.prefault({}).describe('What the tool fetch may do.'),
  inference: inference
    .prefault({})
    .describe('Which models generate, vision, speech and diffusion use, by their names in models.'),
  plugins: z.array(path()).default([]).describe('Modules that bring further tools.'),
})

const languages = ['javascript', 'typescript', 'python'] as const

export const sandboxSection = z.strictObject({
  languages: z
    .array(z.enum(languages))
    .default([...languages])
    .describe('Languages that may be run.'),
  minIsolation: z
    .enum(['bwrap', 'process', 'worker'])
    .default('process')
    .describe('Weakest isolation that is accepted; code is refused where it cannot be had.'),
  timeout: limit().prefault('30s').describe('Time limit of one run.'),
  memory: size().prefault('64MiB').describe('Most memory of one run.'),
  allowNetwork: names('a host').default([]).describe('Hosts that code may reach; none when empty.'),
  allowPaths: z.array(path()).default([]).describe('Folders that code may read; none when empty.'),
})
