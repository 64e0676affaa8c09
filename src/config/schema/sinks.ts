import * as z from 'zod'
import { address, flag, headers, limit, numeric, path, text, textLike } from './values.ts'

const common = {
  description: text().optional().describe('Purpose of the sink, shown to models.'),
  disabled: flag().prefault(false).describe('Disables the sink.'),
}

const blank = '\\{(?:agent|timestamp|date|id|sink|metadata\\.[A-Za-z0-9_-]{1,64})\\}'

const file = z.strictObject({
  kind: z.literal('file').describe('Writes files into a folder.'),
  path: path().describe('The folder.'),
  template: textLike(
    new RegExp(`^(?:[^{}\\\\\\0]|${blank})+$`),
    'a file name, in which {agent}, {timestamp}, {date}, {id}, {sink} and {metadata.NAME} are replaced',
  )
    .default('{agent}-{timestamp}.md')
    .describe(
      'File name; {agent}, {timestamp}, {date}, {id}, {sink} and {metadata.NAME} are replaced. A / separates folders.',
    ),
  ...common,
})

const webhook = z.strictObject({
  kind: z.literal('webhook').describe('Posts to a URL.'),
  url: address('http', 'https').meta({ secret: 'address' }).describe('URL to post to.'),
  headers: headers.meta({ secret: 'headers' }).describe('HTTP headers of the requests.'),
  attempts: numeric({ min: 1, max: 10 }).prefault(4).describe('Maximum attempts.'),
  timeout: limit().prefault('10s').describe('Time limit for one attempt.'),
  ...common,
})

const stdout = z.strictObject({ kind: z.literal('stdout').describe('Prints to standard output.'), ...common })

const tool = z.strictObject({
  kind: z.literal('tool').describe("Calls a server's tool."),
  tool: textLike(/^(?!sink\.|toolway\.)[^.]+\..+$/, 'a tool as server.tool, neither a sink nor a meta-tool').describe(
    'The tool, as server.tool.',
  ),
  arguments: z
    .record(z.string(), z.unknown())
    .default({})
    .meta({ secret: 'payload' })
    .describe('Arguments; {content}, {id} and the placeholders of file names are replaced.'),
  ...common,
})

export const sinksSection = z.record(
  textLike(/^[A-Za-z0-9_-]{1,64}$/, 'a name of up to 64 letters, digits, _ and -'),
  z.discriminatedUnion('kind', [file, webhook, stdout, tool]),
)
