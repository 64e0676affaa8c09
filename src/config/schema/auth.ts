import * as z from 'zod'
import { address, duration, flag, names, numeric, safeAddress, text, textLike } from './values.ts'

const key = z.strictObject({
  id: text('a name for the key').describe('Name of the key, as audit shows it.'),
  hash: textLike(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 hexadecimal digits')
    .meta({ secret: 'digest' })
    .describe('Hash of the key; the key itself is never stored.'),
  agents: names('the name of an agent').default([]).describe('Agents that the key may act as.'),
  admin: flag().prefault(false).describe('Whether the key may use the admin interface.'),
})

/** Require TLS or loopback: tampered keys let anyone impersonate anyone. */
const overTls = <T extends z.ZodType<string>>(schema: T) =>
  schema.refine(safeAddress, {
    error: 'a URL that starts with https://; http:// is for addresses of this machine alone',
  })

const jwt = z.strictObject({
  issuer: overTls(address('https', 'http')).meta({ secret: 'publicAddress' }).describe('Issuer that tokens must name.'),
  audience: text('the audience of tokens').describe('Audience that tokens must name.'),
  jwksUrl: overTls(address('https', 'http'))
    .meta({ secret: 'publicAddress' })
    .describe('Where the keys of the issuer are published.'),
  agentClaim: text('the name of a claim').default('agent').describe('Claim that names the agent.'),
  scopes: z
    .record(textLike(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'a scope'), names('the name of an agent'))
    .default({})
    .describe('Agents that a token may act as by its scopes, beside those of the claim.'),
  resource: address('https', 'http')
    .optional()
    .describe('Address of the endpoint as clients know it; the audience otherwise, where that is an address.'),
  disabled: flag().prefault(false).describe('Turns JSON Web Tokens off.'),
})

/** Applies to tokens chosen by the operator. */
const minTokenLength = 16

export const authSection = z.strictObject({
  token: textLike(
    /^[\x21-\x7e]+$/,
    'generated, none, or a token of letters, digits and signs, without spaces: it is sent in an HTTP header',
  )
    .refine((token) => token === 'generated' || token === 'none' || token.length >= minTokenLength, {
      error: `generated, none, or a token of at least ${minTokenLength} characters: shorter ones can be guessed`,
    })
    .default('generated')
    .meta({ secret: true })
    .describe(
      'generated: one that is made at the first start, kept, and printed at each; none: everyone is let in; anything else is the token itself.',
    ),
  maxFailures: numeric()
    .prefault(10)
    .describe(
      'Wrong credentials that an address (IPv6: a /64) may send at once; more are refused with 429. 0: no limit. A right credential is always let in.',
    ),
  failureInterval: duration({ least: '1ms' })
    .prefault('1s')
    .describe('Time in which an address that has used up maxFailures may send one more.'),
  keys: z.array(key).default([]).meta({ secret: 'digest' }).describe('API keys.'),
  jwt: jwt.optional().describe('JSON Web Tokens of an identity provider.'),
})
