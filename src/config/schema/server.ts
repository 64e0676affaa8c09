import * as z from 'zod'
import { alwaysLoad, exposure } from './policy.ts'
import { address, duration, flag, isProtectedUrl, limit, names, numeric, size, text, textLike } from './values.ts'

/** The host without the brackets that IPv6 addresses have in URLs. */
export const withoutBrackets = (host: string): string => host.replace(/^\[(.*:.*)\]$/, '$1')

/** Paths of Toolway's other endpoints. */
const reserved =
  /^\/(?:livez|readyz|metrics|oauth\/callback|v1\/chat\/completions)\/?$|^\/(?:admin\/api|assets|v0\.1\/servers|v1\/models|\.well-known)(?:\/|$)/

export const serverSection = z.strictObject({
  host: text('a host name or an IP address')
    .transform(withoutBrackets)
    .prefault('127.0.0.1')
    .describe('Address to listen on.'),
  port: numeric({ max: 65_535 }).prefault(4322).describe('Port to listen on; 0: any free port.'),
  path: textLike(/^\/[\w./~-]*$/, 'a path that starts with /')
    .refine((path) => !reserved.test(path), { error: 'a path that Toolway does not use itself, such as /mcp' })
    .default('/mcp')
    .describe('Path of the MCP endpoint; also served with /stream appended.'),
  allowedHosts: names('a host, with its port if it is not the default')
    .default([])
    .describe('Accepted values of the Host header, in addition to host:port and localhost.'),
  allowedOrigins: names('an origin such as https://app.example.com')
    .default([])
    .describe("Accepted values of the Origin header, in addition to the gateway's own."),
  // Accept only http://, because replicas call each other at this address, and the gateway does not serve TLS.
  advertise: address('http')
    .optional()
    .describe('URL where other replicas reach this one, such as http://10.0.0.7:4322. Default: its host and port.'),
  allowUnauthenticated: flag()
    .prefault(false)
    .describe('Allows auth.token none with a host that is not loopback: other machines need no credential.'),
  maxBody: size().prefault('4MiB').describe('Maximum size of a request body.'),
  maxInFlight: size()
    .prefault('128MiB')
    .describe('Maximum total size of request bodies in flight; further requests get 429.'),
  maxInFlightPerCaller: size()
    .prefault('32MiB')
    .describe('Maximum total size per caller, or per address for callers without a credential.'),
  maxValues: numeric({ min: 1 })
    .prefault(100_000)
    .describe('Maximum number of values in one message (object members and array elements); larger messages get 413.'),
  maxConnections: numeric({ min: 1 }).prefault(10_000).describe('Maximum open connections.'),
  maxConnectionsPerAddress: numeric({ min: 1 })
    .prefault(2_000)
    .describe(
      'Maximum open connections per address (IPv6: per /64); raise it if all clients connect through one proxy.',
    ),
  shutdownGrace: duration().prefault('10s').describe('How long calls in flight may take to finish on shutdown.'),
})

export const defaultsSection = z.strictObject({
  agent: text('the name of an agent')
    .optional()
    .describe(
      'Agent for callers that do not specify one; the environment variable TOOLWAY_DEFAULT_AGENT overrides it.',
    ),
  denyOnMissingAgent: flag().prefault(true).describe('Whether callers without an agent are rejected.'),
  expose: exposure
    .default('auto')
    .describe(
      'How agents see tools: direct, meta, both or code; auto: all tools and the meta-tools while the tools take less than autoThreshold, otherwise autoAbove.',
    ),
  autoThreshold: numeric()
    .prefault(10_000)
    .describe('With expose: auto, how many tokens the definitions of all tools may take to be listed.'),
  autoAbove: z.enum(['meta', 'code']).default('meta').describe('With expose: auto, the mode for longer lists.'),
  alwaysLoad: alwaysLoad()
    .default([])
    .describe('Tools that are listed in every mode, and that clients with a tool search load at once.'),
  timeout: limit().prefault('30s').describe('Time limit for a call. Progress restarts it, up to maxTimeout in total.'),
  maxTimeout: limit()
    .prefault('10m')
    .describe('Total time limit for a call whose server reports progress; a longer timeout takes precedence.'),
  debug: flag().prefault(false).describe('Offers get_gateway_status to all agents.'),
})

const key = z.strictObject({
  id: text('a name for the key').describe('Name of the key, shown in the audit log.'),
  hash: textLike(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 hexadecimal digits')
    .meta({ secret: 'digest' })
    .describe('Hash of the key, which may have any form; the key itself is never stored.'),
  agents: names('the name of an agent').default([]).describe('Agents that the key may act as.'),
  endpoints: names('the name of an endpoint')
    .optional()
    .describe('The endpoints that the key may connect to. Default: all, and server.path.'),
  admin: flag().prefault(false).describe('Whether the key may use the admin API and dashboard.'),
})

/** Requires TLS or loopback: someone who could replace the provider's keys in transit could impersonate anyone. */
const overTls = <T extends z.ZodType<string>>(schema: T) =>
  schema.refine(isProtectedUrl, {
    error: 'a URL that starts with https:// (http:// is accepted for loopback addresses only)',
  })

const jwt = z.strictObject({
  issuer: overTls(address('https', 'http'))
    .meta({ secret: 'publicAddress' })
    .describe('Required issuer of tokens (claim `iss`).'),
  audience: text('the audience of tokens').describe('Required audience of tokens (claim `aud`).'),
  jwksUrl: overTls(address('https', 'http'))
    .meta({ secret: 'publicAddress' })
    .describe("URL of the issuer's public keys (JWKS)."),
  agentClaim: text('the name of a claim')
    .default('agent')
    .describe('Claim, or path of a member such as realm_access.roles, that contains the agent or a list of agents.'),
  scopes: z
    .record(textLike(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'a scope'), names('the name of an agent'))
    .default({})
    .describe('Agents that each scope grants, in addition to those in the claim.'),
  resource: address('https', 'http')
    .optional()
    .describe('Public URL of the MCP endpoint. Default: the audience, if it is a URL.'),
  disabled: flag().prefault(false).describe('Disables JSON Web Tokens.'),
})

export const authSection = z.strictObject({
  token: textLike(/^[\x21-\x7e]+$/, 'generated, none, or a token of printable ASCII characters without spaces')
    .default('generated')
    .meta({ secret: true })
    .describe(
      'generated: created at the first start, stored, and printed at every start; none: no authentication; anything else is the token, with at least 16 characters unless server.host is a loopback address.',
    ),
  maxFailures: numeric()
    .prefault(10)
    .describe(
      'Invalid credentials that one address (IPv6: a /64) may send in a burst; further ones get 429. 0: no limit. Valid credentials are always accepted.',
    ),
  failureInterval: duration({ least: '1ms' })
    .prefault('1s')
    .describe('Interval after which an address that has reached maxFailures may try once more.'),
  keys: z.array(key).default([]).meta({ secret: 'digest' }).describe('API keys.'),
  jwt: jwt.optional().describe('JSON Web Tokens from an identity provider.'),
})
