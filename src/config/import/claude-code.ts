import { basename } from 'node:path'
import { pluralize } from '../../lib/message-text.ts'
import { isDisabled } from '../interpolate.ts'
import {
  branch,
  type ConfigTree,
  find,
  leaf,
  mapMembers,
  member,
  type TreeMember,
  toPlain,
  withMember,
} from '../tree.ts'
import { plainName } from '../validate.ts'
import { clientServer } from './client-server.ts'
import { dependsOnFolder, fingerprint } from './server-identity.ts'
import { type FormatReader, shape, type TranslationReport } from './shape.ts'

/**
 * Claude Code's `~/.claude.json`, which contains the user's servers and each project's servers. Identical servers from
 * several projects are merged into one. If projects define different servers with the same name, the project's name is
 * appended to the name of the later one.
 */
export const claudeCode: FormatReader = {
  dialect: 'claude-code',
  recognises(tree) {
    const projects = find(tree, ['projects'])
    if (projects?.kind !== 'branch') return false
    return [...projects.members.values()].some(({ value }) => find(value, ['mcpServers'])?.kind === 'branch')
  },
  translate(tree, report) {
    const found = new Map<string, TreeMember>()
    const read = (section: ConfigTree | undefined, folder: string | undefined) => {
      if (section?.kind !== 'branch') return
      const format = { label: 'Claude Code', timeout: 'ms', tolerant: true, folder: folder || undefined } as const
      for (const [name, { at, value }] of section.members) {
        const server = value.kind === 'branch' ? clientServer(value, name, format, report) : value
        add(found, name, { at, value: server }, folder, report)
      }
    }
    read(find(tree, ['mcpServers']), undefined)
    const projects = find(tree, ['projects'])
    for (const [folder, { value }] of projects?.kind === 'branch' ? projects.members : []) {
      read(switchedOff(value), folder)
    }
    report.notes.push(`read as Claude Code's own file: ${pluralize(found.size, 'server')}`)
    const servers = tree.members.get('mcpServers')
    return shape(tree.at, { mcpServers: member(branch(servers?.value.at ?? tree.at, found), servers?.at ?? tree.at) })
  },
}

/** Marks the servers in `disabledMcpServers` as disabled. */
function switchedOff(project: ConfigTree): ConfigTree | undefined {
  const section = find(project, ['mcpServers'])
  const off = find(project, ['disabledMcpServers'])
  if (section?.kind !== 'branch' || off?.kind !== 'list') return section
  const names = off.items.map((item) => (item.kind === 'leaf' ? item.value : undefined))
  return mapMembers(section, (value, name, at) =>
    names.includes(name) && value.kind === 'branch' ? withMember(value, 'disabled', member(leaf(at, true))) : value,
  )
}

function add(
  found: Map<string, TreeMember>,
  name: string,
  entry: TreeMember,
  folder: string | undefined,
  report: TranslationReport,
): void {
  const known = found.get(name)
  const isSame = known !== undefined && markOf(known.value) === markOf(entry.value)
  // A server that is enabled in any project is enabled.
  if (!known || (isSame && isDisabled(known.value))) found.set(name, entry)
  if (!known || isSame) return
  const project = plainName(basename(folder ?? '')) ?? basename(folder ?? '')
  let other = `${name}-${project}`
  for (let number = 2; found.has(other); number++) other = `${name}-${project}-${number}`
  report.notes.push(`the project ${folder} has a different server named ${name}, which is renamed to ${other}`)
  found.set(other, entry)
}

/** A string that identifies a server; the working folder is included only if the command depends on it. */
function markOf(server: ConfigTree): string {
  const { cwd, ...rest } = toPlain(server) as Record<string, unknown>
  return fingerprint(dependsOnFolder(rest) ? { ...rest, cwd } : rest)
}
