import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect, type TestClient } from '../../fixtures/clients.ts'
import type { WrittenConfig } from '../../fixtures/config-file.ts'
import { type Folder, temporaryFolder } from '../../fixtures/folders.ts'
import { startHttpServer } from '../../fixtures/http-server.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { type Browser, type BrowserOptions, openBrowser } from '../chromium.ts'
import { emptyPage, type SharedVisit, shareVisit, type Visit, type VisitOptions, visit } from '../visit.ts'

/** A gateway with real servers, a connected client and a browser. */
export interface BrowserSetup extends AsyncDisposable {
  readonly toolway: LocalToolway
  readonly config: WrittenConfig & { readonly mcpServers: NonNullable<WrittenConfig['mcpServers']> }
  /** The folder that the filesystem server serves. */
  readonly files: string
  readonly origin: string
  readonly browser: Browser
  /** A connected MCP client of the default user. */
  readonly client: TestClient
  /** Opens the dashboard, signed in. */
  visit(options?: VisitOptions): Promise<Visit>
  /** The same, on a page that tests share. */
  readonly shared: SharedVisit
}

/** How long the breaker of `orders` stays open: long enough to observe, short enough to wait for. */
const openFor = '5s'

export interface BrowserSetupOptions extends BrowserOptions {
  /** A temporary folder if omitted. */
  readonly folder?: Folder
  /** A free port if 0. */
  readonly port?: number
  /** Servers whose calls are captured. */
  readonly capture?: readonly string[]
}

export async function openBrowserSetup(options: BrowserSetupOptions = {}): Promise<BrowserSetup> {
  const { folder: given, port = 0, capture = [], ...browserOptions } = options
  await using open = new AsyncDisposableStack()
  const folder = given ?? open.use(await temporaryFolder())
  const files = join(folder.path, 'files')
  await mkdir(files)
  await writeFile(join(files, 'notes.md'), '# Notes\n\nOne way to every tool.\n')
  const orders = open.use(await startHttpServer())
  const config = {
    history: {},
    mcpServers: {
      everything: {
        ...stdioServers.everything(),
        description: 'Shows everything that MCP has',
        capture: capture.includes('everything'),
      },
      filesystem: {
        ...stdioServers.filesystem(files),
        description: 'Files of the project',
        readTools: ['read_*', 'list_*', 'get_*', 'search_*', 'directory_tree'],
      },
      memory: {
        ...stdioServers.memory(join(folder.path, 'memory.jsonl')),
        description: 'A graph of what was learnt',
        readTools: ['read_graph', 'search_nodes', 'open_nodes'],
      },
      orders: { url: orders.url, description: 'Orders of the shop', breaker: { failures: 3, openFor } },
    },
    server: { port },
    cache: { enabled: true },
    defaults: { agent: 'default' },
    agents: {
      default: { allow: { servers: ['*'] } },
      researcher: {
        allow: { servers: ['filesystem', 'memory'] },
        deny: { tools: { filesystem: ['write_*', 'edit_*', 'move_*'] } },
        perMinute: 600,
      },
      'researcher.junior': { deny: { servers: ['memory'] } },
    },
  }
  const toolway = open.use(await startToolway(config, { folder, watch: true }))
  await toolway.gateway.refresh()
  const { origin } = new URL(toolway.url)
  const browser = open.adopt(await openBrowser(browserOptions), (one) => one.close())
  const client = open.use(await connect('v2', { endpoint: toolway }))
  const visitHere = (options?: VisitOptions) => visit(browser, origin, toolway.token, options)
  const running = open.move()
  return {
    ...{ toolway, config, files, origin, browser, client },
    visit: visitHere,
    shared: shareVisit(() => visitHere({ at: emptyPage })),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
