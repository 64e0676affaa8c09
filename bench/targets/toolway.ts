import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Listening, startChild } from './child.ts'

/** An entry of `mcpServers`. */
export type ServerEntry = Readonly<Record<string, unknown>>

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** The echo server as a process of the gateway. */
export const stdioEcho = (tools = 10): ServerEntry => ({
  command: process.execPath,
  args: [file('./echo-stdio.ts'), String(tools)],
  concurrency: 64,
})

export const httpEcho = (url: string): ServerEntry => ({ url, concurrency: 64 })

/** Its tools only read: what is recorded of a call may reach the disk a moment after the answer. */
export const reads = (entry: ServerEntry): ServerEntry => ({ ...entry, readTools: ['*'] })

const plenty = 1_000_000_000

/** A configuration with everything in force that a call may meet: agents and their rules, limits, validation, audit. */
const everythingOn = {
  version: 1,
  auth: { token: 'the-token-of-this-benchmark' },
  agents: {
    bench: {
      allow: { servers: ['*'] },
      deny: { servers: ['private*'], tools: { '*': ['drop_*', 'never_*'] } },
      perMinute: plenty,
      concurrency: 1000,
    },
    'bench.reader': { allow: { tools: { '*': ['echo', 'lookup_*'] } } },
    stranger: { deny: { servers: ['*'] } },
  },
  defaults: { agent: 'bench' },
  policy: { blockedTools: ['*.delete_*'], pins: 'warn' },
  limits: { perMinute: plenty, concurrency: 1000 },
  discovery: { refresh: '1h', listDeadline: '60s' },
  audit: { arguments: 'redacted', sync: 'writes' },
  telemetry: { log: 'warn', metrics: true },
}

export interface ToolwayOptions {
  /** Where configuration and state go; what is there already is found again. */
  readonly folder: string
  readonly servers: Readonly<Record<string, ServerEntry>>
  readonly more?: Readonly<Record<string, unknown>>
}

/** Writes the configuration; the path of the file. */
export async function writeToolwayConfig({ folder, servers, more }: ToolwayOptions): Promise<string> {
  await mkdir(folder, { recursive: true })
  const path = join(folder, 'toolway.json')
  const config = { ...everythingOn, stores: { path: './state' }, mcpServers: servers, ...more }
  await writeFile(path, JSON.stringify(config, undefined, 2))
  return path
}

const main = '../../src/cli/main.ts'

/** Starts the real program, the way a user does. */
export async function startToolway(
  options: ToolwayOptions,
  {
    program = new URL(main, import.meta.url),
    words = [],
    ...how
  }: { program?: URL; words?: readonly string[]; nodeArgs?: readonly string[]; ipc?: boolean } = {},
): Promise<Listening> {
  const config = await writeToolwayConfig(options)
  return startChild(program, ['serve', '--port', '0', '--json', '--config', config, ...words], how)
}
