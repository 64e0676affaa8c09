import { resolve } from 'node:path'
import { nearMiss } from '../../core/near.ts'
import { isRelative } from '../absolute-paths.ts'
import { unknownKeyAt } from '../issues.ts'
import { withMember } from '../map-servers.ts'
import {
  type Branch,
  branch,
  find,
  keyPath,
  type Leaf,
  leaf,
  type Member,
  mapLeaves,
  plain,
  type Tree,
} from '../tree.ts'
import { normaliseServer } from './aliases.ts'
import { harmless, leftAside, type Manner, startTimeouts } from './manner.ts'
import { oauthOf } from './oauth.ts'
import type { Report } from './report.ts'
import { serverKeys } from './server-keys.ts'
import { instead } from './shape.ts'
import { keepsState, statefulNote } from './stateful-servers.ts'

/** A server as one of the clients writes it, in our own shape. What is left out is said, unless nobody misses it. */
export function clientServer(written: Branch, name: string, manner: Manner, report: Report): Branch {
  const { respell } = manner
  const server = respell ? (mapLeaves(written, (part) => respelt(part, respell)) as Branch) : written
  const members = new Map<string, Member>()
  for (const [key, entry] of server.members) {
    const reason = leftAside[key]
    const { value } = entry
    if (key === 'timeout' && manner.timeout) members.set(key, { at: entry.at, value: inUnit(value, manner.timeout) })
    else if (key === 'oauth' || (key === 'auth' && isForeignAuth(value))) {
      const auth = oauthOf(value, `mcpServers.${name}`, report)
      if (auth) members.set('auth', { at: entry.at, value: auth })
    } else if (reason !== undefined) report.warnings.push(`${keyPath(['mcpServers', name, key])} ${reason}`)
    else if (serverKeys.includes(key)) members.set(key, entry)
    else if (!harmless.includes(key) && !startTimeouts.has(key)) unknown(key, entry, name, manner, members, report)
  }
  for (const [key, unit] of startTimeouts) {
    const entry = server.members.get(key)
    if (entry) members.set('startTimeout', { at: entry.at, value: inUnit(entry.value, unit) })
  }
  const normal = normaliseServer(branch(server.at, members), name, report)
  return inFolder(withSession(normal, name, report), manner.folder)
}

/** Clients start a server for themselves alone; one that keeps state must stay so. */
function withSession(server: Branch, name: string, report: Report): Branch {
  const command = server.members.get('command')
  if (!command || server.members.has('session')) return server
  if (!keepsState(plain(server) as Readonly<Record<string, unknown>>)) return server
  report.notes.push(statefulNote(name))
  return withMember(server, 'session', { at: command.at, value: leaf(command.at, 'caller') })
}

const respelt = (part: Leaf, respell: (text: string) => string): Leaf =>
  typeof part.value === 'string' ? instead(part, respell(part.value)) : part

/** Ours has a type; that of the clients is about OAuth alone. */
const isForeignAuth = (part: Tree): boolean => part.kind === 'branch' && !part.members.has('type')

function unknown(
  key: string,
  entry: Member,
  name: string,
  { tolerant, label }: Manner,
  members: Map<string, Member>,
  report: Report,
): void {
  if (!tolerant) members.set(key, entry)
  else if (nearMiss(key, serverKeys) !== undefined) report.problems.push(unknownKeyAt(entry.at, key, serverKeys))
  else
    report.warnings.push(
      `${keyPath(['mcpServers', name, key])} is left aside: Toolway does not know what ${label} means by it`,
    )
}

/** A bare number in the client's unit; text says its own. */
export const inUnit = (part: Tree, unit: 's' | 'ms'): Tree =>
  part.kind === 'leaf' && typeof part.value === 'number' ? instead(part, `${part.value}${unit}`) : part

/** A program starts where the client would have started it. A folder that nobody wrote stands where the command does. */
function inFolder(server: Branch, folder: string | undefined): Branch {
  const command = server.members.get('command')
  if (folder === undefined || !command) return server
  const placed = ['cwd', 'envFile'].reduce((one, key) => placedIn(one, key, folder), server)
  if (placed.members.has('cwd')) return placed
  return withMember(placed, 'cwd', { at: command.at, value: leaf(command.at, folder) })
}

function placedIn(server: Branch, key: string, folder: string): Branch {
  const part = find(server, [key])
  if (part?.kind !== 'leaf' || typeof part.value !== 'string' || !isRelative(part.value)) return server
  return withMember(server, key, { at: part.at, value: instead(part, resolve(folder, part.value)) })
}
