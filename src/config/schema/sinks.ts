import * as z from 'zod'
import { headers } from './headers.ts'
import { address, flag, path, text, textLike } from './values.ts'

const disabled = flag().prefault(false).describe('Leaves the sink out.')

const file = z.strictObject({
  kind: z.literal('file').describe('Writes files into a folder.'),
  path: path().describe('The folder.'),
  template: text('the name of a file')
    .default('{agent}-{timestamp}.md')
    .describe('Name of a file; {agent}, {timestamp} and {id} are filled in.'),
  disabled,
})

const webhook = z.strictObject({
  kind: z.literal('webhook').describe('Posts to a URL.'),
  url: address('http', 'https').describe('Where to post to.'),
  headers: headers.describe('Headers sent along.'),
  disabled,
})

const stdout = z.strictObject({ kind: z.literal('stdout').describe('Prints to standard output.'), disabled })

const tool = z.strictObject({
  kind: z.literal('tool').describe("Calls a server's tool."),
  tool: textLike(/^[^.]+\..+$/, 'a tool as server.tool').describe('The tool, as server.tool.'),
  arguments: z.record(z.string(), z.unknown()).default({}).describe('Its arguments; {content} and {id} are filled in.'),
  disabled,
})

/** Named destinations for what agents produce. */
export const sinksSection = z.record(z.string(), z.discriminatedUnion('kind', [file, webhook, stdout, tool]))
