import * as z from 'zod'
import type { ServerDetail, ServerView, SignInView } from '../contract.ts'
import { breakerState, figures, health } from './figures.ts'
import { fits } from './fits.ts'

const fields = {
  name: z.string(),
  description: z.string(),
  health,
  reason: z.string().describe('Why, in a sentence; empty where there is nothing to say.'),
  since: z.number(),
  transport: z.enum(['stdio', 'http', 'sse', 'in-process']),
  era: z.enum(['legacy', 'modern']).nullable(),
  protocolVersion: z.string().nullable(),
  breaker: breakerState,
  tools: z.int().min(0),
  latencyMs: z.number().nullable(),
  lastError: z.string().nullable(),
  process: z
    .strictObject({ pid: z.int(), startedAt: z.number(), restarts: z.int().min(0) })
    .nullable()
    .describe('The process that runs for it; for admins alone.'),
  calls: figures,
  paused: z.boolean().describe('Turned off by POST servers/NAME/disable.'),
}

export const serverView = fits<ServerView>('ServerView', 'A server and how it is.')(z.strictObject(fields))

export const serverDetail = fits<ServerDetail>(
  'ServerDetail',
  'A server, how it is, and what it said last.',
)(
  z.strictObject({
    ...fields,
    stderr: z.array(z.string()).describe('The end of what it wrote to stderr, without secrets; for admins alone.'),
  }),
)

export const signInView = fits<SignInView>(
  'SignInView',
  'Where to sign in.',
)(z.strictObject({ url: z.string().describe('To be opened in a browser, which comes back to this gateway.') }))
