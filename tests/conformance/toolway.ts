import { openGateway } from '../../src/admin/gateway.ts'
import { loadConfig } from '../../src/config/load.ts'
import { silentLog } from '../../src/core/log.ts'
import type { Gateway } from '../../src/runtime/gateway-api.ts'
import { type WrittenConfig, writeConfig } from '../fixtures/config-file.ts'
import { temporaryFolder } from '../fixtures/folders.ts'

export const serverName = 'fixture'

/** One server and no renaming, because the suite knows its entries by name; no token, because it cannot send one. */
export const openToolway = (url: string, open: AsyncDisposableStack, auth?: object): Promise<Gateway> =>
  openGatewayWith({ mcpServers: { [serverName]: { url, ...(auth && { auth }) } } }, open)

/** The same with other servers. */
export async function openGatewayWith(settings: WrittenConfig, open: AsyncDisposableStack): Promise<Gateway> {
  const folder = open.use(await temporaryFolder())
  const config = {
    server: { port: 0 },
    auth: { token: 'none' },
    naming: { strategy: 'flat' },
    defaults: { expose: 'direct' },
    native: { tools: [] },
    // Many of them start at once when the suite tests clients.
    discovery: { listDeadline: '20s' },
    stores: { path: './state' },
    // The suite starts a gateway for each scenario and sees nothing of what it keeps.
    history: { disabled: true },
    ...settings,
  }
  const file = await writeConfig(folder.path, config, 'conformance')
  const loaded = await loadConfig({ paths: [file], env: process.env, cwd: folder.path })
  return open.use(await openGateway(loaded, { log: silentLog }))
}

export async function toolwayInFrontOf(url: string, open: AsyncDisposableStack): Promise<string> {
  return (await (await openToolway(url, open)).listen()).url
}
