import { loadConfig } from '../../src/config/load.ts'
import { silentLog } from '../../src/core/log.ts'
import { createGateway } from '../../src/gateway.ts'
import { writeConfig } from '../fixtures/config-file.ts'
import { temporaryFolder } from '../fixtures/folders.ts'

/** One server and no renaming, because the suite knows its entries by name; no token, because it cannot send one. */
export async function toolwayInFrontOf(url: string, open: AsyncDisposableStack): Promise<string> {
  const folder = open.use(await temporaryFolder())
  const config = {
    server: { port: 0 },
    auth: { token: 'none' },
    naming: { strategy: 'flat' },
    defaults: { expose: 'direct' },
    native: { tools: [] },
    // Many of them start at once when the suite tests clients.
    discovery: { listDeadline: '20s' },
    mcpServers: { fixture: { url } },
  }
  const file = await writeConfig(folder.path, config, 'conformance')
  const loaded = await loadConfig({ paths: [file], env: process.env, cwd: folder.path })
  const gateway = open.use(await createGateway(loaded, { log: silentLog }))
  return (await gateway.listen()).url
}
