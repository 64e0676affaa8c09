import * as z from 'zod'
import { address, flag, names, safeAddress, text } from './values.ts'

/** How tokens for a server are obtained through OAuth. */
export const oauth = z.strictObject({
  type: z.literal('oauth').describe('A token that is obtained and refreshed through OAuth.'),
  grant: z
    .enum(['authorization_code', 'client_credentials'])
    .default('authorization_code')
    .describe('Who the token stands for: a person who signs in with toolway auth, or Toolway itself.'),
  clientId: text('a client id').optional().describe('Client id, where the server does not register clients itself.'),
  clientSecret: text('a client secret').optional().describe('Secret of that client; best written as a variable.'),
  privateKey: text('a private key')
    .optional()
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
    .describe('The only authorization server to deal with; otherwise the one that the server names.'),
  scopes: names('a scope').optional().describe('Scopes to ask for; otherwise those that the server names.'),
  perPrincipal: flag()
    .prefault(false)
    .describe('Whether each principal signs in for itself; otherwise all calls go by one grant.'),
})

/** What is wrong with settings that are each fine by themselves; undefined where nothing is. */
export function oauthFault(auth: z.output<typeof oauth>, url: string): string | undefined {
  const { grant, clientId, clientSecret, privateKey, perPrincipal } = auth
  if (!safeAddress(url)) return 'an https:// url, which OAuth needs so that nobody reads the token on its way'
  if (clientId === undefined && (clientSecret ?? privateKey) !== undefined)
    return 'auth.clientId beside the secret of the client'
  if (grant !== 'client_credentials') return undefined
  if (clientId === undefined || (clientSecret ?? privateKey) === undefined)
    return 'auth.clientId and auth.clientSecret (or auth.privateKey), which client_credentials needs'
  return perPrincipal ? 'auth.grant authorization_code, since client_credentials is for Toolway itself' : undefined
}
