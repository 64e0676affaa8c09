import { asRecord } from '../../lib/is-record.ts'
import type { ServerDefinition } from '../import/read-servers.ts'
import { contentOf, editText } from './edit-text.ts'
import { FileProblem } from './file.ts'
import { entryLines, indented, unit } from './yaml-edit.ts'

export interface NewServer {
  readonly name: string
  readonly definition: ServerDefinition
  /** A comment to write above the entry. It says where the server was imported from. */
  readonly comment?: string | undefined
}

/** Formats servers for the `mcpServers` section, with each line indented by `indent`. */
export const serversBlock = (servers: readonly NewServer[], indent = unit): string =>
  servers.map(({ name, definition, comment }) => indented(entryLines(name, definition, comment), indent)).join('')

/** A configuration as text. Edits change only `mcpServers`. */
export interface ServersText {
  readonly names: readonly string[]
  /** Adds a server, or replaces the one of this name. */
  set(server: NewServer): string
  /** Removes a server, which must exist. */
  remove(name: string): string
}

/** Edits the servers in a YAML, JSON or TOML configuration. */
export function serversText(path: string, text: string): ServersText {
  const names = Object.keys(asRecord(asRecord(contentOf(path, text)).mcpServers))
  return {
    names,
    set: ({ name, definition, comment }) =>
      editText(path, text, [{ path: ['mcpServers', name], value: definition, comment }]),
    remove(name) {
      if (!names.includes(name)) throw new FileProblem(`it has no server ${name}`)
      return editText(path, text, [{ path: ['mcpServers', name] }])
    },
  }
}

export const addServers = (text: string, servers: readonly NewServer[]): string =>
  editText(
    'toolway.yaml',
    text,
    servers.map(({ name, definition, comment }) => ({ path: ['mcpServers', name], value: definition, comment })),
  )
