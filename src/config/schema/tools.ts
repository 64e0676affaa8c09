import * as z from 'zod'
import { address, flag, headers, limit, names, numeric, path, size, text, textLike } from './values.ts'

const builtIn = ['hash', 'time', 'fetch', 'generate', 'vision', 'speech', 'diffusion', 'execute_code'] as const

const fetch = z.strictObject({
  maxBytes: size().prefault('1MiB').describe('Maximum size of a page or image.'),
  timeout: limit().prefault('20s').describe('Time limit for one fetch.'),
  allowPrivate: flag().prefault(false).describe('Allows requests to loopback and private networks.'),
})

const model = () => text('the name of a model in the section models').optional()

const inference = z.strictObject({
  generate: model().describe('Model for generate. Default: chat.model.'),
  vision: model().describe('Model for vision.'),
  speech: model().describe('Model for speech synthesis.'),
  transcription: model().describe('Model for transcription.'),
  diffusion: model().describe('Model for image generation.'),
  timeout: limit().prefault('5m').describe('Time limit for one answer.'),
  maxBytes: size().prefault('16MiB').describe('Maximum size of audio and images, input and output.'),
})

export const nativeSection = z.strictObject({
  tools: z
    .array(z.enum(builtIn))
    .default([...builtIn])
    .describe('Built-in tools to serve.'),
  fetch: fetch.prefault({}).describe('Limits for the fetch tool.'),
  inference: inference
    .prefault({})
    .describe('Models for generate, vision, speech and diffusion, by their names in models.'),
  plugins: z.array(path()).default([]).describe('Modules that provide additional tools.'),
})

const languages = ['javascript', 'typescript', 'python'] as const

export const sandboxSection = z.strictObject({
  languages: z
    .array(z.enum(languages))
    .default([...languages])
    .describe('Allowed languages.'),
  minIsolation: z
    .enum(['bwrap', 'process', 'worker'])
    .default('process')
    .describe('Minimum isolation; code does not run if it is not available.'),
  timeout: limit().prefault('30s').describe('Time limit for one run.'),
  memory: size({ least: '1MiB' }).prefault('64MiB').describe('Memory limit for one run, at least 1MiB.'),
  allowNetwork: names('a host')
    .default([])
    .describe('Hosts that code may connect to, without a port; * matches any characters. Empty: none.'),
  allowPaths: z.array(path()).default([]).describe('Folders that code may read; empty: none.'),
})

const sinkFields = {
  description: text().optional().describe('Purpose of the sink, shown to models.'),
  disabled: flag().prefault(false).describe('Disables the sink.'),
}

const placeholder = '\\{(?:agent|timestamp|date|id|sink|metadata\\.[A-Za-z0-9_-]{1,64})\\}'

const fileSink = z.strictObject({
  kind: z.literal('file').describe('Writes files into a folder.'),
  path: path().describe('The folder.'),
  template: textLike(
    new RegExp(`^(?:[^{}\\\\\\0]|${placeholder})+$`),
    'a file name, in which {agent}, {timestamp}, {date}, {id}, {sink} and {metadata.NAME} are replaced',
  )
    .default('{agent}-{timestamp}.md')
    .describe(
      'File name; {agent}, {timestamp}, {date}, {id}, {sink} and {metadata.NAME} are replaced. A / separates folders.',
    ),
  ...sinkFields,
})

const webhookSink = z.strictObject({
  kind: z.literal('webhook').describe('Posts to a URL.'),
  url: address('http', 'https').meta({ secret: 'address' }).describe('URL to post to.'),
  headers: headers.meta({ secret: 'headers' }).describe('HTTP headers of the requests.'),
  attempts: numeric({ min: 1, max: 10 }).prefault(4).describe('Maximum attempts.'),
  timeout: limit().prefault('10s').describe('Time limit for one attempt.'),
  ...sinkFields,
})

const stdoutSink = z.strictObject({ kind: z.literal('stdout').describe('Prints to standard output.'), ...sinkFields })

const toolSink = z.strictObject({
  kind: z.literal('tool').describe("Calls a server's tool."),
  tool: textLike(/^(?!sink\.|toolway\.)[^.]+\..+$/, 'a tool as server.tool, neither a sink nor a meta-tool').describe(
    'The tool, as server.tool.',
  ),
  arguments: z
    .record(z.string(), z.unknown())
    .default({})
    .meta({ secret: 'payload' })
    .describe('Arguments; {content}, {id} and the placeholders of file names are replaced.'),
  ...sinkFields,
})

export const sinksSection = z.record(
  textLike(/^[A-Za-z0-9_-]{1,64}$/, 'a name of up to 64 letters, digits, _ and -'),
  z.discriminatedUnion('kind', [fileSink, webhookSink, stdoutSink, toolSink]),
)
