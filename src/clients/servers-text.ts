import { syntaxOf } from '../config/parse/document.ts'
import { isSection, sectionText } from './section-text.ts'
import { removeServer, replaceServer } from './yaml-change.ts'
import { addServers, documentOf, type NewServer } from './yaml-servers.ts'

/** A configuration of ours as text in which servers are set and removed without touching anything else in it. */
export interface ServersText {
  readonly names: readonly string[]
  /** With this server: new, or in the place of the one of its name. */
  set(server: NewServer): string
  /** Without the server of this name, which is there. */
  remove(name: string): string
}

/** The servers of a file in any of the three syntaxes, where our own form and that of most clients has them. */
export function serversText(path: string, text: string): ServersText {
  if (syntaxOf({ path, text }) === 'yaml') return yamlServers(text)
  const { members, edited } = sectionText(path, text, () => ['mcpServers'])
  return {
    names: Object.keys(members),
    set: ({ name, definition }) => edited({ [name]: definition }),
    remove: (name) => edited({}, [name]),
  }
}

function yamlServers(text: string): ServersText {
  const servers = documentOf(text).toJS()?.mcpServers
  const names = isSection(servers) ? Object.keys(servers) : []
  return {
    names,
    set: (server) => (names.includes(server.name) ? replaceServer(text, server) : addServers(text, [server])),
    remove: (name) => removeServer(text, name),
  }
}
