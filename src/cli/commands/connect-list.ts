import { clientText, ownName } from '../../clients/edit.ts'
import { look } from '../../clients/file.ts'
import { FileProblem } from '../../clients/file-problem.ts'
import { type ClientKind, clientKinds, clientLabels } from '../../config/import/client-kind.ts'
import { type ExitCode, exit } from '../exit.ts'
import { short } from '../home.ts'
import type { CommonOptions } from '../load.ts'
import { createOutput } from '../output.ts'
import { type Shell, spelling } from '../shell.ts'
import { table } from '../table.ts'
import { connectionsOf, fileOf, surroundings } from './connect-state.ts'

interface ClientState {
  readonly client: ClientKind
  readonly name: string
  readonly file: string
  readonly state: 'connected' | 'not connected' | 'no file' | 'unreadable'
  readonly way: 'stdio' | 'http' | null
  readonly servers: number
  readonly undo: boolean
  readonly problem: string | null
}

/** Lists every client that we know, and whether it comes to us. */
export async function listClients(shell: Shell, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const clients = await Promise.all(clientKinds.map((client) => stateOf(client, shell)))
  if (options.json) {
    output.value({ clients })
    return exit.ok
  }
  const { print, paint, width } = output
  const lines = table<ClientState>(
    [
      { title: 'CLIENT', value: ({ client }) => client, whole: true },
      { title: 'NAME', value: ({ name }) => name },
      {
        title: 'STATE',
        value: ({ state, way, problem }) => problem ?? (way ? `${state} (${way})` : state),
        style: (cell, { state }) =>
          paint(state === 'connected' ? 'green' : state === 'unreadable' ? 'red' : 'dim', cell),
      },
      { title: 'OTHER SERVERS', value: ({ servers }) => (servers === 0 ? '' : String(servers)) },
      { title: 'FILE', value: ({ file }) => short(file, shell), style: (cell) => paint('dim', cell) },
    ],
    clients,
    { width, heading: (title) => paint('dim', title) },
  )
  for (const line of lines) print(line)
  output.note(`\`${spelling(shell.env)} connect CLIENT\` points one at Toolway.`)
  return exit.ok
}

/** How a client of this user is. */
export async function stateOf(client: ClientKind, shell: Shell): Promise<ClientState> {
  const { path } = await fileOf(client, surroundings(shell), 'user')
  const known = { client, name: clientLabels[client], file: path, way: null, servers: 0, problem: null }
  try {
    const undo = await connectionsOf(shell).has(client, path)
    const { bytes, text } = await look(path)
    if (!bytes) return { ...known, state: 'no file', undo }
    const { servers } = clientText(client, path, text)
    const own = servers[ownName]
    const way =
      own === undefined
        ? null
        : JSON.stringify(own).includes('"url"') || JSON.stringify(own).includes('Url"')
          ? 'http'
          : 'stdio'
    const others = Object.keys(servers).filter((name) => name !== ownName).length
    return { ...known, state: own === undefined ? 'not connected' : 'connected', way, servers: others, undo }
  } catch (thrown) {
    if (!(thrown instanceof FileProblem)) throw thrown
    return { ...known, state: 'unreadable', undo: false, problem: thrown.message }
  }
}
