import type { Config } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import type { KeptGrant, OAuth } from '../../runtime/oauth-sign-in.ts'
import type { Output } from '../output.ts'
import { table } from '../table.ts'

/** Shows the grants that are kept, without anything that could be used. */
export async function printGrants(
  oauth: OAuth,
  config: Config,
  name: string | undefined,
  output: Output,
): Promise<void> {
  const all = await oauth.list()
  const grants = name === undefined ? all : all.filter(({ server }) => server === name)
  if (output.json) {
    output.value({ grants: grants.map(asJson) })
    return
  }
  if (grants.length === 0) {
    output.note('Nobody has signed in to anything yet.')
    return
  }
  const lines = table<KeptGrant>(
    [
      { title: 'SERVER', value: ({ server }) => server, whole: true },
      { title: 'PRINCIPAL', value: ({ principal }) => principal },
      { title: 'ISSUER', value: ({ issuer }) => issuer },
      { title: 'SCOPES', value: ({ scopes }) => scopes.join(' ') },
      { title: 'STATE', value: (grant) => stateOf(grant, config) },
    ],
    grants,
    { width: output.width, heading: (title) => output.paint('dim', title) },
  )
  for (const line of lines) output.print(line)
}

function stateOf({ server, url, expiresAt, renewable }: KeptGrant, { mcpServers }: Config): string {
  const configured = mcpServers[server]
  if (!configured || configured.transport === 'stdio' || new URL(configured.url).href !== url)
    return 'not used any more'
  if (renewable || expiresAt === undefined) return 'good'
  return expiresAt > systemClock.now() ? `until ${new Date(expiresAt).toISOString()}` : 'expired'
}

const asJson = ({ expiresAt, grantedAt, ...grant }: KeptGrant) => ({
  ...grant,
  principal: grant.principal === '' ? null : grant.principal,
  grantedAt: new Date(grantedAt).toISOString(),
  expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
})
