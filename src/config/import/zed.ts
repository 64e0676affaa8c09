import { escapeVariables } from '../interpolate.ts'
import { type BranchNode, branch, find, mapServers } from '../tree.ts'
import { folderOf } from './client-kind.ts'
import { clientServers, withoutThose } from './client-server.ts'
import { shape, type TranslationReport } from './shape.ts'

/** Recognizes Zed's `settings.json`, which has servers under `context_servers`. */
export const isZed = ({ members }: BranchNode): boolean => members.get('context_servers')?.value.kind === 'branch'

/** Converts Zed's file, including the older form `command: {path, args, env}`. */
export function translateZed(tree: BranchNode, report: TranslationReport): BranchNode {
  const runnable = withoutThose(tree.members.get('context_servers'), reasonFor, report)
  const shaped = shape(tree.at, { mcpServers: runnable })
  const servers = mapServers(shaped, (server, name) => zedServer(server, name, report)).members.get('mcpServers')
  const folder = folderOf(tree.at.file.path)
  const format = { label: 'Zed', timeout: 's', respell: escapeVariables, folder, tolerant: true } as const
  return clientServers({ tree, servers, format, called: "Zed's settings", known: ['context_servers'] }, report)
}

const reasonFor = ({ members }: BranchNode): string | undefined =>
  members.has('command') || members.has('url') ? undefined : 'a Zed extension runs it'

function zedServer(server: BranchNode, name: string, report: TranslationReport): BranchNode {
  const members = new Map(server.members)
  const settings = members.get('settings')?.value
  members.delete('settings')
  if (settings?.kind === 'branch' && settings.members.size > 0) {
    report.warnings.push(`mcpServers.${name}.settings is ignored: it applies only to Zed extensions`)
  }
  const command = members.get('command')
  if (command?.value.kind !== 'branch') return branch(server.at, members)
  const { value } = command
  members.delete('command')
  for (const [key, source] of Object.entries({ command: 'path', args: 'args', env: 'env' })) {
    const part = find(value, [source])
    if (part && !members.has(key)) members.set(key, { at: command.at, value: part })
  }
  return branch(server.at, members)
}
