import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openGateway } from '../../../src/admin/gateway.ts'
import { type LoadedConfig, loadConfig } from '../../../src/config/load.ts'
import type { Gateway } from '../../../src/runtime/gateway-api.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { createKeptLog, type KeptLog } from '../../fixtures/log.ts'
import { serverProgram } from '../../fixtures/programs.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'
import { startTickets, type Tickets, ticketsToken } from './tickets.ts'

export interface Design extends Endpoint, AsyncDisposable {
  readonly gateway: Gateway
  readonly loaded: LoadedConfig
  readonly log: KeptLog
  readonly tickets: Tickets
  /** Where its files and its state lie. */
  readonly folder: string
  /** The folder that the file calls /srv/notes. */
  readonly notes: string
  /** Writes a file of the design, changed. */
  change(file: string, edit: (text: string) => string): Promise<void>
}

/**
 * Starts Toolway with the files of a design, as they are printed but for addresses: programs of packages that are
 * installed here instead of npx, folders and hosts of this test. `more` is a file of our own beside them, for the machine.
 */
export async function startDesign(files: Readonly<Record<string, string>>, more: object = {}): Promise<Design> {
  await using open = new AsyncDisposableStack()
  const folder = open.use(await temporaryFolder())
  const tickets = open.use(await startTickets())
  const notes = join(folder.path, 'notes')
  await mkdir(notes)
  await writeFile(join(notes, 'note.txt'), 'hello')
  const here = (text: string) =>
    text
      .replaceAll('"npx"', JSON.stringify(process.execPath))
      .replace(/"-y", "@modelcontextprotocol\/server-([\w-]+)"/g, (_, name) => JSON.stringify(serverProgram(name)))
      .replaceAll('/srv/notes', notes)
      .replaceAll('tickets.example.com:8080', tickets.host)
  for (const [name, printed] of Object.entries(files)) {
    await writeFile(join(folder.path, name), here(await readFile(join(import.meta.dirname, 'files', printed), 'utf8')))
  }
  const machine = {
    server: { port: 0 },
    stores: { path: './state' },
    discovery: { listDeadline: '30s' },
    // Nothing here reads it, and its thread takes longer to start than a gateway.
    history: { disabled: true },
    ...more,
  }
  await writeFile(join(folder.path, 'machine.json'), JSON.stringify(machine))
  const [first = ''] = Object.keys(files)
  const paths = [first, 'machine.json'].map((name) => join(folder.path, name))
  const env = { ...process.env, TICKETS_TOKEN: ticketsToken, MEMORY_FILE: join(folder.path, 'memory.json') }
  const load = (whileRunning: boolean) => loadConfig({ paths, env, cwd: folder.path, whileRunning })
  const log = createKeptLog()
  const loaded = await load(false)
  const gateway = open.use(await openGateway(loaded, { log, load: () => load(true), watch: true }))
  const { url } = await gateway.listen()
  const running = open.move()
  return {
    ...{ url, token: gateway.token ?? '', gateway, loaded, log, tickets, folder: folder.path, notes },
    async change(file, edit) {
      const path = join(folder.path, file)
      await writeFile(path, edit(await readFile(path, 'utf8')))
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

export interface Listed {
  readonly name: string
  readonly server: string
}

/** A caller: what it is listed, and what comes of a call: its text, or the code that says why not. */
export async function callerOf(endpoint: Endpoint, agent?: string) {
  const session = await rawSession(endpoint, agent === undefined ? {} : { headers: { 'toolway-agent': agent } })
  return {
    async tools(): Promise<readonly Listed[]> {
      const { result } = await session.answer('tools/list')
      const tools = (result?.tools ?? []) as { name: string; _meta: Record<string, string> }[]
      return tools.map(({ name, _meta }) => ({ name, server: _meta['dev.toolway/server'] ?? '' }))
    },
    async call(name: string, args: object = {}): Promise<string> {
      const { result, error } = await session.answer('tools/call', { name, arguments: args })
      const { content = [], _meta = {} } = (result ?? {}) as { content?: { text: string }[]; _meta?: object }
      const refused = (_meta as Record<string, unknown>)['dev.toolway/error'] ?? error?.data
      return (refused as { code?: string } | undefined)?.code ?? content.map(({ text }) => text).join('')
    },
  }
}
