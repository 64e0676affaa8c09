import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { systemClock } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import type { Gateway } from '../../src/runtime/gateway-api.ts'
import { openOAuth, signIn } from '../../src/runtime/oauth-sign-in.ts'
import type { Task } from './client-steps.ts'
import { openToolway, serverName } from './toolway.ts'

/** What the suite tells a client that was registered by hand. */
interface Registered {
  readonly client_id?: string
  readonly client_secret?: string
  readonly private_key_pem?: string
  readonly signing_algorithm?: string
  readonly issuer?: string
}

/** The suite knows this client by its document, and by no other. */
const clientMetadata = 'https://conformance-test.local/client-metadata.json'

function authFor(scenario: string, given: Registered): object {
  return {
    type: 'oauth',
    clientId: given.client_id,
    clientSecret: given.client_secret,
    issuer: given.issuer,
    ...(given.private_key_pem && { privateKey: given.private_key_pem, signingAlgorithm: given.signing_algorithm }),
    ...(scenario.startsWith('auth/client-credentials') && { grant: 'client_credentials' }),
    ...(scenario === 'auth/basic-cimd' && { clientMetadata }),
  }
}

/** A person who signs in as often as Toolway asks for it would lose patience after this. */
const patience = 2

/**
 * Uses the suite's server through Toolway, and does what its operator would do when it says that somebody has to sign
 * in: what `toolway auth` does, beside the running gateway. A browser that clicks on "yes" at once is a GET.
 */
export async function takeAuthSteps({ scenario, url, version, context = '{}' }: Task): Promise<void> {
  await using open = new AsyncDisposableStack()
  const gateway = await openToolway(url, open, authFor(scenario, JSON.parse(context)))
  const endpoint = await gateway.listen()
  const pinned = version >= '2026-07-28' ? { pin: version } : 'legacy'
  const client = new Client({ name: 'conformance-driver', version: '1.0.0' }, { versionNegotiation: { mode: pinned } })
  await client.connect(new StreamableHTTPClientTransport(new URL(endpoint.url)))
  open.defer(() => client.close())
  let signIns = 0
  const untilLetIn = async (refused: () => Promise<boolean>): Promise<void> => {
    while (await refused()) {
      if (signIns++ === patience) throw new Error('signed in, and still not let in')
      await signInBeside(gateway)
    }
  }
  await untilLetIn(async () => {
    await gateway.refresh()
    return gateway.servers().some(({ status }) => status.health === 'needs-auth')
  })
  await client.listTools()
  await untilLetIn(async () => {
    const { _meta } = await client.callTool({ name: 'test-tool', arguments: {} })
    return (_meta?.['dev.toolway/error'] as { code?: string } | undefined)?.code === 'AUTH_REQUIRED'
  })
}

async function signInBeside({ loaded: { config } }: Gateway): Promise<void> {
  const server = config.mcpServers[serverName]
  if (!server) throw new Error('the server is not configured')
  await using oauth = await openOAuth(config, { clock: systemClock, log: silentLog })
  await signIn({
    oauth,
    server: serverName,
    config: server,
    browse: async (url) => void (await fetch(url)),
    withinMs: 5_000,
    clock: systemClock,
    signal: new AbortController().signal,
  })
}
