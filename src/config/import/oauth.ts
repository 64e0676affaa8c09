import { type Branch, find, leaf, list, type Tree } from '../tree.ts'
import type { Report } from './report.ts'
import { isFalse, shape } from './shape.ts'

const first = (part: Tree, keys: readonly string[]): Tree | undefined => {
  for (const key of keys) {
    const found = find(part, [key])
    if (found) return found
  }
  return undefined
}

/** What clients write under `oauth` as our `auth`; nothing where it is switched off. */
export function oauthOf(part: Tree, server: string, report: Report): Branch | undefined {
  if (isFalse(part) || isFalse(find(part, ['enabled']))) return undefined
  const clientId = first(part, ['clientId', 'client_id', 'CLIENT_ID'])
  const clientSecret = first(part, ['clientSecret', 'client_secret', 'CLIENT_SECRET'])
  if (clientSecret && !clientId) {
    report.warnings.push(`${server}: the client secret is left aside: there is no client id to go with it`)
  }
  return shape(part.at, {
    type: leaf(part.at, 'oauth'),
    clientId,
    clientSecret: clientId && clientSecret,
    scopes: scopesOf(first(part, ['scopes', 'scope'])),
  })
}

/** A list, or words in one text. */
function scopesOf(part: Tree | undefined): Tree | undefined {
  if (part?.kind !== 'leaf' || typeof part.value !== 'string') return part
  return list(
    part.at,
    part.value
      .split(/[\s,]+/)
      .filter((scope) => scope !== '')
      .map((scope) => leaf(part.at, scope)),
  )
}
