import * as z from 'zod'
import { serverFields } from './catalog.ts'
import { named, type ViewOf } from './figures.ts'

const offered = named('ServerOffer', 'A resource, resource template or prompt of a server.', {
  kind: z.enum(['resource', 'template', 'prompt']),
  name: z.string(),
  uri: z.string().nullable().describe('The URI or URI template; null for prompts.'),
  description: z.string(),
})
export type ServerOffer = ViewOf<typeof offered>

const connection = named('ServerConnection', 'An open connection to a server, in this process.', {
  scope: z
    .enum(['shared', 'session', 'call', 'spare'])
    .describe('Who uses it: all callers with the same capabilities, one session, one call, or nobody yet.'),
  pid: z.int().nullable().describe('The process id, if the server is a process of this gateway.'),
  openedAt: z.number().nullable(),
  principal: z.string().nullable().describe('Who it was opened for, if it belongs to one caller.'),
  sessions: z.int().min(0).describe('Open sessions that have used it.'),
  inUse: z.boolean().describe('Whether calls are running on it.'),
})

const event = named('ServerEvent', "Something that happened to a server's processes or connections.", {
  at: z.number(),
  kind: z
    .enum(['started', 'lost', 'failed', 'idle', 'restarted', 'paused', 'resumed'])
    .describe('`lost`: it ended or stopped responding; `failed`: none could be opened; `idle`: closed as unused.'),
  pid: z.int().nullable(),
  reason: z.string().nullable(),
  times: z.int().min(1).describe('How many times in a row it happened, of which `at` is the last.'),
})

export const serverDetail = named('ServerDetail', 'A server, what it offers, its connections, history and output.', {
  ...serverFields,
  launch: z.string().nullable().describe('The command line or URL, without secrets; admins only.'),
  callsSince: z.number().describe('The start of the period that `calls` covers.'),
  toolTokens: z.int().min(0).describe('Context tokens that the definitions of all its tools use.'),
  offers: z.array(offered).describe('Its resources, resource templates and prompts; at most 500.'),
  connections: z
    .strictObject({ total: z.int().min(0), open: z.array(connection) })
    .nullable()
    .describe('The open connections of this process, of which at most 100 are listed; admins only.'),
  events: z
    .array(event)
    .describe('Starts, exits, failures and operator actions in this process, newest first, at most 100; admins only.'),
  stderr: z
    .array(z.strictObject({ at: z.number(), text: z.string() }))
    .describe('The last 200 lines of stderr, oldest first, redacted; admins only.'),
})
export type ServerDetail = ViewOf<typeof serverDetail>
