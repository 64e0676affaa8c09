import * as z from 'zod'
import { guard } from './policy.ts'
import { serverBreaker } from './resilience.ts'
import {
  address,
  duration,
  flag,
  headers,
  limit,
  names,
  numeric,
  path,
  refuse,
  safeAddress,
  text,
  textLike,
  verbatim,
} from './values.ts'

const oauth = z.strictObject({
  type: z.literal('oauth').describe('A token that is obtained and refreshed through OAuth.'),
  grant: z
    .enum(['authorization_code', 'client_credentials'])
    .default('authorization_code')
    .describe('Who the token stands for: a person who signs in with toolway auth, or Toolway itself.'),
  clientId: text('a client id').optional().describe('Client id, where the server does not register clients itself.'),
  clientSecret: text('a client secret')
    .optional()
    .meta({ secret: true })
    .describe('Secret of that client; best written as a variable.'),
  privateKey: text('a private key')
    .optional()
    .meta({ secret: true })
    .describe('Private key of that client (PKCS #8, PEM), instead of a secret; best written as ${file:PATH}.'),
  signingAlgorithm: z
    .enum(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'])
    .default('ES256')
    .describe('Algorithm of the private key.'),
  clientMetadata: address('https')
    .optional()
    .describe('Address of a document that describes this client, for authorization servers that read such.'),
  issuer: address('https', 'http')
    .optional()
    .meta({ secret: 'publicAddress' })
    .describe('The only authorization server to deal with; otherwise the one that the server names.'),
  scopes: names('a scope').optional().describe('Scopes to ask for; otherwise those that the server names.'),
  perPrincipal: flag()
    .prefault(false)
    .describe('Whether each principal signs in for itself; otherwise all calls go by one grant.'),
})

/** Checks combinations of OAuth settings; undefined if they are valid. */
function oauthFault(auth: z.output<typeof oauth>, url: string): string | undefined {
  const { grant, clientId, clientSecret, privateKey, perPrincipal } = auth
  if (!safeAddress(url)) return 'an https:// url, which OAuth needs so that nobody reads the token on its way'
  if (clientId === undefined && (clientSecret ?? privateKey) !== undefined)
    return 'auth.clientId beside the secret of the client'
  if (grant !== 'client_credentials') return undefined
  if (clientId === undefined || (clientSecret ?? privateKey) === undefined)
    return 'auth.clientId and auth.clientSecret (or auth.privateKey), which client_credentials needs'
  return perPrincipal ? 'auth.grant authorization_code, since client_credentials is for Toolway itself' : undefined
}

/** Used for our own tools, meta-tools and sinks. */
const reserved = ['native', 'toolway', 'sink']

export const serverName = textLike(
  /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
  'a name of up to 64 letters, digits and _ . - that starts with a letter or digit',
).refine((name) => !reserved.includes(name), {
  error: `a name other than ${reserved.join(', ')}, which stand for Toolway itself`,
})

const serverAuth = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('bearer').describe('A token that is sent as it is.'),
    token: textLike(/^[\x21-\x7e]+$/, 'a token without spaces: it is sent in an HTTP header')
      .meta({ secret: true })
      .describe('The token; best written as a variable.'),
  }),
  oauth,
])

const fields = z.strictObject({
  description: z.string().default('').describe('What the server is for; list_servers shows it.'),
  command: text('a command')
    .optional()
    .meta({ secret: 'words' })
    .describe('Program to start; the server then speaks over its standard input and output.'),
  args: z
    .array(verbatim())
    .default([])
    .meta({ secret: 'words' })
    .describe('Arguments of the program, passed on as they are.'),
  env: z
    .record(textLike(/^[^=\0]+$/, 'the name of a variable'), verbatim())
    .default({})
    .meta({ secret: 'variables' })
    .describe('Environment of the program; nothing else of ours but PATH, HOME and the like.'),
  cwd: path().optional().describe('Folder that the program starts in; the folder of this file otherwise.'),
  url: address('http', 'https')
    .optional()
    .meta({ secret: 'address' })
    .describe('Address of a server that is reached over HTTP.'),
  transport: z
    .enum(['stdio', 'http', 'sse'])
    .optional()
    .describe('How to reach it; inferred from command and url. sse is the older HTTP transport.'),
  headers: headers.meta({ secret: 'headers' }).describe('HTTP headers sent to it.'),
  auth: serverAuth.optional().meta({ secret: 'section' }).describe('Credential for it: bearer with a token, or oauth.'),
  disabled: flag().prefault(false).describe('Leaves the server out; its variables need not be set.'),
  session: z
    .enum(['shared', 'caller', 'call'])
    .default('shared')
    .describe('One connection for all, one for each calling session, or a fresh one for each call.'),
  connect: z.enum(['lazy', 'eager']).default('lazy').describe('Connect on first use, or at start.'),
  idle: duration()
    .prefault('10m')
    .describe(
      'Stops a process that no open session has used after this time without calls; the next call starts it. 0 never.',
    ),
  restarts: z
    .strictObject({
      max: numeric().prefault(5).describe('Restarts within the window before the server is left alone.'),
      window: limit().prefault('1m').describe('Length of the window.'),
    })
    .prefault({})
    .describe('How often a crashing process is started again.'),
  spares: numeric({ max: 64 }).prefault(1).describe('Warm spares for session caller or call.'),
  refresh: duration()
    .optional()
    .describe('How often this server is asked what it offers; discovery.refresh otherwise.'),
  approve: names().default([]).describe("Tools that need a person's yes; refused where nobody can be asked."),
  readOnly: flag().prefault(false).describe('Refuses writes before they are sent.'),
  readTools: names().default([]).describe('Tools that only read.'),
  idempotentTools: names().default([]).describe('Tools that may be called twice without harm.'),
  trustAnnotations: flag().prefault(false).describe("Whether the server's own readOnlyHint and idempotentHint count."),
  tools: z
    .strictObject({
      include: names().default(['*']).describe('Tools in the catalog.'),
      exclude: names().default([]).describe('Tools kept out of the catalog.'),
    })
    .prefault({})
    .describe('Which of its tools exist at all.'),
  timeout: limit()
    .optional()
    .describe('Time limit of a call, which progress starts again; defaults.timeout otherwise.'),
  maxTimeout: limit()
    .optional()
    .describe('Time limit of a call while the server reports progress; defaults.maxTimeout otherwise.'),
  startTimeout: limit()
    .optional()
    .describe(
      'How long connecting to it, with starting its process, may take. Unset: 2 minutes for a process, 30 s over HTTP.',
    ),
  toolTimeouts: z.record(z.string(), limit()).default({}).describe('Time limit of a call by tool.'),
  concurrency: numeric({ min: 1 }).prefault(16).describe('Calls in flight.'),
  priority: numeric({ min: -1000, max: 1000 }).prefault(0).describe('Higher wins a name conflict.'),
  guards: z.array(guard).default([]).describe('Checks of arguments, and of the URIs of resources: path, sql and url.'),
  breaker: serverBreaker
    .optional()
    .describe('Circuit breaker of this server; what is left out comes from the section breaker.'),
})

const bothOrNeither = 'exactly one of command and url'

/** A server is either a program that we start or a URL. */
const mcpServer = fields.transform(({ command, args, env, cwd, url, headers, auth, transport, ...common }, context) => {
  if (command !== undefined && url === undefined) {
    if (transport !== undefined && transport !== 'stdio')
      return refuse(context, `a url, which transport ${transport} needs`)
    if (auth !== undefined)
      return refuse(context, 'no auth: a program that is started gets its credentials through env')
    return { ...common, transport: 'stdio' as const, command, args, env, cwd }
  }
  if (url === undefined || command !== undefined) return refuse(context, bothOrNeither)
  if (transport === 'stdio') return refuse(context, 'a command, which transport stdio needs')
  const fault = auth?.type === 'oauth' ? oauthFault(auth, url) : undefined
  if (fault !== undefined) return refuse(context, fault)
  return { ...common, transport: transport ?? inferTransport(url), url, headers, auth }
})

/** Servers with the older HTTP+SSE transport usually publish their stream at …/sse. */
function inferTransport(url: string): 'http' | 'sse' {
  return URL.canParse(url) && new URL(url).pathname.replace(/\/$/, '').endsWith('/sse') ? 'sse' : 'http'
}

export const mcpServersSection = z.record(serverName, mcpServer)
