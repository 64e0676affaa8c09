import * as z from 'zod'
import {
  address,
  duration,
  flag,
  headers,
  isProtectedUrl,
  limit,
  names,
  numeric,
  path,
  size,
  text,
  textLike,
} from './values.ts'

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

export const skillsSection = z.strictObject({
  folders: z
    .array(path())
    .default([])
    .describe('Folders whose subfolders with a SKILL.md are served as skills of the server `skills`.'),
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

export const namingSection = z.strictObject({
  strategy: z
    .enum(['prefix', 'flat', 'custom'])
    .default('prefix')
    .describe('prefix: server and tool; flat: the tool alone if the name is unique; custom: names in aliases.'),
  separator: textLike(/^(?:[A-Za-z0-9_-]{1,8}|::|\.)$/, 'one to eight letters, digits, _ or -, or :: or .')
    .default('__')
    .describe('Separator between server and tool; the default is accepted by all model vendors, :: and . are not.'),
  gateway: textLike(/^[A-Za-z0-9_.-]{1,64}$/, 'a name of up to 64 letters, digits, _ . or -')
    .optional()
    .describe(
      'Name of this gateway that calls may put before a name, as in NAME.server.tool or NAME_server_tool; toolway always works.',
    ),
  aliases: z
    .record(
      textLike(/^[^.]+\..+$/, 'a tool as server.tool'),
      textLike(/^[A-Za-z0-9_-]{1,64}$/, 'a name of up to 64 letters, digits, _ or -'),
    )
    .default({})
    .describe('For strategy custom: names by server.tool; other tools are named as with prefix.'),
  maxLength: numeric({ min: 16, max: 64 })
    .prefault(64)
    .describe('Maximum length of a served name; longer names are shortened with a hash.'),
})

export const discoverySection = z.strictObject({
  mode: z
    .enum(['startup', 'runtime', 'hybrid'])
    .default('hybrid')
    .describe(
      'startup: list each server once, at startup; runtime: on first use, and again for each new conversation; hybrid: use cached lists at once and refresh them in the background.',
    ),
  refresh: duration().prefault('60s').describe('Interval for listing a server again; 0: never.'),
  listDeadline: duration()
    .optional()
    .describe(
      'How long a list request waits for servers that are starting. Default: 8 s for a server without a cached list, 2 s for others. Calls wait up to their own timeout.',
    ),
  maxEntries: numeric({ min: 1 })
    .prefault(10_000)
    .describe('Maximum number of entries in one list of a server (tools, resources, templates or prompts).'),
  maxListSize: size().prefault('16MiB').describe('Maximum size of one list of a server.'),
})

export const searchSection = z.strictObject({
  learn: flag()
    .prefault(false)
    .describe('Learns from use: stores the words of searches that led to a successful call of a tool that they found.'),
  pool: z
    .enum(['agent', 'all'])
    .default('agent')
    .describe("Whose searches count for a caller: those of its agent, or all agents'."),
  halfLife: duration({ least: '1h', most: '365d' })
    .prefault('30d')
    .describe('How long it takes until a learned search counts half as much.'),
  examples: z
    .record(textLike(/^[^.]+\..+$/, 'a tool as server.tool'), z.array(text('an example of a task').max(1000)).max(50))
    .default({})
    .describe('Example tasks by server.tool, found like those that were learned.'),
})

export const registrySection = z.strictObject({
  url: address('http', 'https')
    .refine(isProtectedUrl, { error: 'an https:// URL: a tampered response could inject a command' })
    .meta({ secret: 'address' })
    .optional()
    .describe('URL of an MCP registry whose servers can be added in the dashboard.'),
  serve: flag()
    .prefault(false)
    .describe('Lists the endpoints of this gateway at /v0.1/servers, without a credential, as an MCP registry.'),
})

/** Settings for scanning results. Tool definitions are always scanned. */
export const scanSection = z.strictObject({
  results: z
    .enum(['off', 'warn', 'strip'])
    .default('off')
    .describe(
      'Scans tool, resource and prompt results for hidden characters and instructions to the model: `warn` reports and marks them, `strip` also removes hidden characters.',
    ),
})
