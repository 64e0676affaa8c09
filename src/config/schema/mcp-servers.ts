import * as z from 'zod'
import { builtInSources } from '../../core/source.ts'
import type { ToolOverride, ToolSelection } from '../../core/tool-overrides.ts'
import { approvers, guard } from './policy.ts'
import { serverBreaker } from './resilience.ts'
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
  refuse,
  text,
  textLike,
  verbatim,
} from './values.ts'

const oauth = z.strictObject({
  type: z.literal('oauth').describe('A token obtained and refreshed through OAuth.'),
  grant: z
    .enum(['authorization_code', 'client_credentials'])
    .default('authorization_code')
    .describe('authorization_code: a person signs in with toolway auth; client_credentials: Toolway signs in itself.'),
  clientId: text('a client id')
    .optional()
    .describe('Client ID, if the authorization server does not support registration.'),
  clientSecret: text('a client secret')
    .optional()
    .meta({ secret: true })
    .describe('Client secret; preferably a variable.'),
  privateKey: text('a private key')
    .optional()
    .meta({ secret: true })
    .describe("The client's private key (PKCS #8, PEM) instead of a secret; preferably ${file:PATH}."),
  signingAlgorithm: z
    .enum(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'])
    .default('ES256')
    .describe('Algorithm for the private key.'),
  clientMetadata: address('https')
    .optional()
    .describe('URL of the client metadata document, for authorization servers that support it.'),
  issuer: address('https', 'http')
    .optional()
    .meta({ secret: 'publicAddress' })
    .describe('The only accepted authorization server. Default: the one that the MCP server names.'),
  scopes: names('a scope')
    .optional()
    .describe('Scopes to request. Default: those that the MCP server names, and `offline_access` if it is supported.'),
  perPrincipal: flag()
    .prefault(false)
    .describe('Whether each principal signs in separately; otherwise all calls use one grant.'),
})

/** Checks combinations of OAuth settings. Returns what is expected; undefined if the settings are valid. */
function oauthFault(auth: z.output<typeof oauth>, url: string): string | undefined {
  const { grant, clientId, clientSecret, privateKey, perPrincipal } = auth
  if (!isProtectedUrl(url)) return 'an https:// url: OAuth tokens must not be sent unencrypted'
  if (clientId === undefined && (clientSecret ?? privateKey) !== undefined)
    return 'auth.clientId, which a client secret or private key requires'
  if (grant !== 'client_credentials') return undefined
  if (clientId === undefined || (clientSecret ?? privateKey) === undefined)
    return 'auth.clientId and auth.clientSecret (or auth.privateKey), which client_credentials requires'
  return perPrincipal ? 'auth.grant authorization_code: perPrincipal does not work with client_credentials' : undefined
}

export const serverName = textLike(
  /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
  'a name of up to 64 letters (A-Z, a-z), digits and _ . - that starts with a letter or digit',
).refine((name) => !builtInSources.includes(name), {
  error: `a name other than ${builtInSources.join(', ')}, which are reserved`,
})

const serverAuth = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('bearer').describe('A fixed bearer token.'),
    token: textLike(/^[\x21-\x7e]+$/, 'a token of printable ASCII characters without spaces')
      .meta({ secret: true })
      .describe('The token; preferably a variable.'),
  }),
  oauth,
])

const values = z.record(z.string(), z.unknown()).default({}).meta({ secret: 'payload' })

export const toolOverride = z
  .strictObject(
    {
      name: textLike(/^[A-Za-z0-9_.-]{1,128}$/, 'a name of up to 128 letters (A-Z, a-z), digits and _ . -')
        .optional()
        .describe("Name for callers, behind the server's. Rules, pins, limits and audit use the server's own name."),
      title: text('a title').optional().describe('Title for callers.'),
      description: text('a description').optional().describe('Description for callers.'),
      hidden: flag().prefault(false).describe('Removes the tool from lists and search. It can still be called.'),
      hide: z
        .array(text('the name of an argument'))
        .default([])
        .describe('Arguments that callers neither see nor set. Required ones need a value in fixed or defaults.'),
      fixed: values.describe('Values that every call gets. Callers neither see nor set these arguments.'),
      defaults: values.describe('Values for arguments that a call leaves out.'),
      annotations: z
        .strictObject({
          title: text('a title').optional().describe('Older form of the title.'),
          readOnlyHint: flag().optional().describe('Whether the tool only reads. Trusted.'),
          destructiveHint: flag().optional().describe('Whether it may destroy something.'),
          idempotentHint: flag().optional().describe('Whether it is safe to retry. Trusted.'),
          openWorldHint: flag().optional().describe('Whether it reaches things outside its server.'),
        })
        .default({})
        .describe("Annotations that replace the server's."),
      tags: z.array(text('a tag')).default([]).describe('Words that find_tool finds; in _meta["dev.toolway/tags"].'),
    },
    { error: 'a section with what callers see of this tool; lists are include and exclude' },
  )
  .superRefine(({ fixed, defaults }, context) => {
    const both = Object.keys(fixed).find((argument) => Object.hasOwn(defaults, argument))
    if (both !== undefined)
      context.addIssue({ code: 'custom', path: ['defaults', both], message: 'no default: the argument is fixed' })
  })

function refuseEqualNames(tools: ToolSelection, context: z.core.$RefinementCtx<unknown>): void {
  const { include: _, exclude: __, ...overrides } = tools
  const taken = new Map<string, string>()
  for (const [key, { name = '' }] of Object.entries(overrides as Record<string, ToolOverride>)) {
    const other = taken.get(name)
    if (other !== undefined)
      context.addIssue({ code: 'custom', path: [key, 'name'], message: `another name: ${other} has this one` })
    else if (name !== '') taken.set(name, key)
  }
}

// The type leaves out the overrides: TypeScript cannot declare an object with two lists and any other members.
const toolSelection = z
  .object({
    include: names().default(['*']).describe('Tools to include in the catalog.'),
    exclude: names().default([]).describe('Tools to exclude from the catalog.'),
  })
  .catchall(toolOverride)
  .superRefine(refuseEqualNames)
  .transform((tools): ToolSelection => tools) as unknown as z.ZodType<ToolSelection, Partial<ToolSelection>>

const fields = z.strictObject({
  description: z.string().default('').describe('Purpose of the server, shown by list_servers.'),
  command: text('a command')
    .optional()
    .meta({ secret: 'words' })
    .describe('Program to start; it communicates over stdin and stdout.'),
  args: z
    .array(verbatim())
    .default([])
    .meta({ secret: 'words' })
    .describe('Arguments for the program, passed unchanged.'),
  env: z
    .record(textLike(/^[^=\0]+$/, 'the name of a variable'), verbatim())
    .default({})
    .meta({ secret: 'variables' })
    .describe('Environment variables for the program, in addition to basic ones such as PATH and HOME.'),
  cwd: path().optional().describe('Working directory for the program. Default: the folder that contains this file.'),
  url: address('http', 'https')
    .optional()
    .meta({ secret: 'address' })
    .describe('URL of a server that is reached over HTTP.'),
  transport: z
    .enum(['stdio', 'http', 'sse'])
    .optional()
    .describe('Transport; inferred from command and url. sse is the deprecated HTTP+SSE transport.'),
  headers: headers.meta({ secret: 'headers' }).describe('HTTP headers for requests to the server.'),
  auth: serverAuth
    .optional()
    .meta({ secret: 'section' })
    .describe('Credential for the server: bearer with a token, or oauth.'),
  disabled: flag().prefault(false).describe('Disables the server; its variables need not be set.'),
  session: z
    .enum(['shared', 'caller', 'call'])
    .default('shared')
    .describe(
      'shared: one connection for all; caller: one per caller, that is, for each session and agent; call: a new one per call.',
    ),
  era: z
    .enum(['auto', 'legacy', 'modern'])
    .default('auto')
    .describe(
      'Which protocol to use with a server that supports both. auto: sessions for clients with sessions that the server may ask, else 2026-07-28; legacy: always a revision with sessions; modern: always 2026-07-28.',
    ),
  connect: z.enum(['lazy', 'eager']).default('lazy').describe('lazy: connect on first use; eager: at startup.'),
  idle: duration()
    .prefault('10m')
    .describe(
      'Stops the process after this time without calls, unless an open session has used it or a task may still run; the next call starts it. 0: never.',
    ),
  restarts: z
    .strictObject({
      max: numeric().prefault(5).describe('Maximum restarts within the window; after that the server stays stopped.'),
      window: limit().prefault('1m').describe('Length of the window.'),
    })
    .prefault({})
    .describe('Restart limits for a crashing process.'),
  spares: numeric({ max: 64 })
    .prefault(1)
    .describe('Number of connections to start in advance, if session is caller or call.'),
  refresh: duration().optional().describe('Interval for refreshing the lists. Default: discovery.refresh.'),
  approve: names().default([]).describe("Tools that need a person's approval; denied if no person can be asked."),
  approvers: approvers().optional().describe('Who may answer for approve. Default: approvals.by.'),
  readOnly: flag().prefault(false).describe('Denies writes.'),
  readTools: names().default([]).describe('Tools that only read.'),
  idempotentTools: names().default([]).describe('Tools that are safe to retry.'),
  trustAnnotations: flag().prefault(false).describe("Whether to trust the server's readOnlyHint and idempotentHint."),
  tools: toolSelection
    .prefault({})
    .describe(
      "Which of the server's tools are in the catalog and, by the name of a tool, what callers see of it; a tool that is itself called include is =include.",
    ),
  timeout: limit().optional().describe('Time limit for a call; progress restarts it. Default: defaults.timeout.'),
  maxTimeout: limit()
    .optional()
    .describe('Total time limit for a call whose server reports progress. Default: defaults.maxTimeout.'),
  startTimeout: limit()
    .optional()
    .describe(
      'Time limit for connecting, including the start of the process. Default: 2 minutes for a process, 30 s over HTTP.',
    ),
  toolTimeouts: z.record(z.string(), limit()).default({}).describe('Time limits for calls, by tool.'),
  concurrency: numeric({ min: 1 })
    .prefault(16)
    .describe('Maximum calls in flight; a caller without admin rights may have three quarters of them.'),
  priority: numeric({ min: -1000, max: 1000 }).prefault(0).describe('Priority in name conflicts; the highest wins.'),
  guards: z.array(guard).default([]).describe('Checks for arguments and resource URIs: path, sql and url.'),
  capture: flag()
    .prefault(false)
    .describe('Keeps the arguments and results of calls to the server for the dashboard, redacted.'),
  breaker: serverBreaker
    .optional()
    .describe('Circuit breaker for this server; missing keys come from the section breaker.'),
})

const bothOrNeither = 'exactly one of command and url'

/** A server is either a program that Toolway starts or a URL. */
const mcpServer = fields.transform(({ command, args, env, cwd, url, headers, auth, transport, ...common }, context) => {
  if (command !== undefined && url === undefined) {
    if (transport !== undefined && transport !== 'stdio')
      return refuse(context, `a url, which transport ${transport} requires`)
    if (auth !== undefined) return refuse(context, 'no auth: pass credentials to a program through env')
    return { ...common, transport: 'stdio' as const, command, args, env, cwd }
  }
  if (url === undefined || command !== undefined) return refuse(context, bothOrNeither)
  if (transport === 'stdio') return refuse(context, 'a command, which transport stdio requires')
  const fault = auth?.type === 'oauth' ? oauthFault(auth, url) : undefined
  if (fault !== undefined) return refuse(context, fault)
  return { ...common, transport: transport ?? inferTransport(url), url, headers, auth }
})

/** Infers the transport from the URL: servers with the older HTTP+SSE usually publish their stream at …/sse. */
function inferTransport(url: string): 'http' | 'sse' {
  return URL.canParse(url) && new URL(url).pathname.replace(/\/$/, '').endsWith('/sse') ? 'sse' : 'http'
}

export const mcpServersSection = z.record(serverName, mcpServer)
