import { join } from 'node:path'
import { ConnectionBackups } from '../../clients/connection-backups.ts'
import { clientText } from '../../clients/entry.ts'
import { FileProblem, readSnapshot } from '../../config/edit/file.ts'
import {
  type ClientFile,
  type ClientKind,
  clientFiles,
  clientKinds,
  clientLabels,
  type HostEnvironment,
} from '../../config/import/client-kind.ts'
import { ownEntryName } from '../../config/import/own-entry.ts'
import { isFile } from '../../config/locate.ts'
import { systemClock } from '../../core/clock.ts'
import { stateHome } from '../../core/home.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import type { CommonOptions } from '../command-table.ts'
import { createOutput, type Shell, shortPath, UsageError } from '../kit.ts'
import { load } from '../load.ts'

type ClientState = Awaited<ReturnType<typeof stateOf>>

export async function listClients(shell: Shell, options: CommonOptions): Promise<void> {
  const output = createOutput(shell, options.json)
  const clients = await Promise.all(clientKinds.map((client) => stateOf(client, shell)))
  // Clients can be listed without a valid configuration.
  const loaded = await load(shell, options).catch(() => undefined)
  const endpoints = Object.entries(loaded?.config.endpoints ?? {}).map(([name, { description = null }]) => ({
    ...{ name, description },
    clients: clients.flatMap(({ client, entries }) => (entries.includes(ownEntryName(name)) ? [client] : [])),
  }))
  if (options.json) return output.value({ clients, endpoints })
  const { paint } = output
  output.table<ClientState>(clients, [
    { title: 'CLIENT', value: ({ client }) => client, whole: true },
    { title: 'NAME', value: ({ name }) => name },
    {
      title: 'STATE',
      value: ({ state, way, problem }) => problem ?? (way ? `${state} (${way})` : state),
      style: (cell, { state }) => paint(state === 'connected' ? 'green' : state === 'unreadable' ? 'red' : 'dim', cell),
    },
    { title: 'OTHER SERVERS', value: ({ servers }) => (servers === 0 ? '' : String(servers)) },
    { title: 'FILE', value: ({ file }) => shortPath(file, shell), style: (cell) => paint('dim', cell) },
  ])
  if (endpoints.length > 0) {
    output.print('')
    output.table<(typeof endpoints)[number]>(endpoints, [
      { title: 'ENDPOINT', value: ({ name }) => name, whole: true },
      { title: 'CONNECTED', value: ({ clients }) => clients.join(', ') },
      { title: 'DESCRIPTION', value: ({ description }) => description ?? '' },
    ])
  }
  output.note(`\`${shell.command} connect CLIENT\` connects a client to Toolway.`)
  if (endpoints.length > 0) output.note('--endpoint NAME connects it to an endpoint.')
}

/** Whether and how one of this user's clients is connected. */
export async function stateOf(client: ClientKind, shell: Shell) {
  const { path } = await fileOf(client, hostEnvironment(shell), 'user')
  const known = {
    client,
    name: clientLabels[client],
    file: path,
    way: null,
    servers: 0,
    entries: [] as readonly string[],
    problem: null,
  }
  try {
    const undo = await connectionsOf(shell).has(client, path)
    const { bytes, text } = await readSnapshot(path)
    if (!bytes) return { ...known, state: 'no file' as const, undo }
    const { servers, own } = clientText(client, path, text)
    const facts = { ...known, servers: Object.keys(servers).length - own.length, undo }
    if (own.length === 0) return { ...facts, state: 'not connected' as const }
    const isHttp = own.some((name) => /"url"|Url"/.test(JSON.stringify(servers[name])))
    return { ...facts, state: 'connected' as const, way: isHttp ? 'http' : 'stdio', entries: own }
  } catch (thrown) {
    if (!(thrown instanceof FileProblem)) throw thrown
    return { ...known, state: 'unreadable' as const, undo: false, problem: thrown.message }
  }
}

export const hostEnvironment = ({ env, cwd }: Shell): HostEnvironment => ({ env, cwd, platform: process.platform })

/** The backups of client files. They are in the user's state folder, regardless of the configuration. */
export function connectionsOf({ env }: Shell): ConnectionBackups {
  return new ConnectionBackups(join(stateHome(env), 'toolway', 'clients'), () => systemClock.now())
}

export function clientNamed(name: string): ClientKind {
  const wanted = name.toLowerCase()
  const known = clientKinds.find((kind) => kind === wanted || clientLabels[kind].toLowerCase() === wanted)
  if (known) return known
  const longer = clientKinds.filter((kind) => kind.startsWith(wanted))
  throw new UsageError(
    longer.length > 0
      ? `${name} is not the full name of a client; did you mean ${longer.join(' or ')}?`
      : `There is no client ${name}${didYouMean(name, clientKinds)}`,
    `The clients are ${clientKinds.join(', ')}.`,
  )
}

/** The client's file to edit: the first that exists, or else the default one. */
export async function fileOf(
  client: ClientKind,
  host: HostEnvironment,
  scope: ClientFile['scope'],
): Promise<ClientFile> {
  const candidates = clientFiles(host, [client]).filter((file) => file.scope === scope)
  for (const file of candidates) if (await isFile(file.path)) return file
  const [first] = candidates
  if (first) return first
  throw new UsageError(`${clientLabels[client]} has no project file.`, 'Omit --project.')
}
