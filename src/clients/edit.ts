import type { ClientKind } from '../config/import/client-kind.ts'
import { shapes } from './entry.ts'
import { isSection, type Section, sectionText, valueAt } from './section-text.ts'

/** The name under which clients know us. */
export const ownName = 'toolway'

/** A client's file as text that can be changed without touching anything else in it. */
export interface ClientText {
  /** The servers in it, by name. */
  readonly servers: Section
  /** Where they stand. */
  readonly path: readonly string[]
  /** With our entry, or without it, and without the servers named. */
  edited(entry: object | undefined, without?: readonly string[]): string
}

export function clientText(client: ClientKind, file: string, text: string): ClientText {
  const { members, path, edited } = sectionText(file, text, (whole) => serversPath(client, whole))
  return {
    servers: members,
    path,
    edited: (entry, without = []) =>
      entry ? edited({ [ownName]: entry }, without) : edited({}, [...without, ownName]),
  }
}

/** The newer form of OpenCode has its servers one level deeper. */
function serversPath(client: ClientKind, whole: Section): readonly string[] {
  const { servers } = shapes[client]
  const deeper = [...servers, 'servers']
  return client === 'opencode' && isSection(valueAt(whole, deeper)) ? deeper : servers
}
