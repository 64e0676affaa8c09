import * as z from 'zod'
import { address, duration, flag, isProtectedUrl, names, numeric, text, textLike } from './values.ts'

const key = z.strictObject({
  id: text('a name for the key').describe('Name of the key, shown in the audit log.'),
  hash: textLike(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 hexadecimal digits')
    .meta({ secret: 'digest' })
    .describe('Hash of the key, which may have any form; the key itself is never stored.'),
  agents: names('the name of an agent').default([]).describe('Agents that the key may act as.'),
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
