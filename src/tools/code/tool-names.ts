import { createHash } from 'node:crypto'
import type { LookupOptions, Served, View } from '../../core/access.ts'
import { seenName } from '../../core/entry.ts'
import { memoizeByObject } from '../../lib/memoize.ts'
import type { ProgramCall } from './program-messages.ts'

export type Names = ReturnType<typeof createNames>

/** The names of the tools in a list. They are cached by list, because a list stays the same object until it changes. */
export const programNames = memoizeByObject(createNames)

type ToolsByName = ReadonlyMap<string, Served>

/** The identifiers of a server's tools. Computed on first use, because most servers are never used by a program. */
const spellingsOf = memoizeByObject((tools: ToolsByName) => spellIdentifiers(tools.keys()))

function createNames(tools: readonly Served[]) {
  const servers = new Map<string, ToolsByName>()
  for (const [server, served] of Map.groupBy(tools, ({ entry }) => entry.server))
    servers.set(server, new Map(served.map((one) => [seenName(one.entry), one])))
  const { identifiers, names } = spellIdentifiers(servers.keys())
  /** The exact name of a server, given either that name or the server's identifier. */
  const serverOf = (spelling: string) => (servers.has(spelling) ? spelling : names.get(spelling))
  return {
    server: serverOf,
    /** Finds a tool by exact names first, then by identifiers. */
    find(server: string, tool: string): Served | undefined {
      const own = servers.get(serverOf(server) ?? '')
      return own?.get(tool) ?? own?.get(spellingsOf(own).names.get(tool) ?? tool)
    },
    identifiers({ entry }: Served) {
      const { server } = entry
      const name = seenName(entry)
      const own = servers.get(server)
      const tool = own && spellingsOf(own).identifiers.get(name)
      return { server: identifiers.get(server) ?? server, tool: tool ?? name }
    },
  }
}

function spellIdentifiers(exact: Iterable<string>) {
  const identifiers = identifiersOf(exact)
  return { identifiers, names: new Map([...identifiers].map(([name, identifier]) => [identifier, name])) }
}

/**
 * An identifier for each name. A name that is a valid identifier stays unchanged; any other name is converted, with
 * part of its hash as a suffix if the result is taken or ambiguous. The result does not depend on the order of the
 * names.
 */
export function identifiersOf(names: Iterable<string>): ReadonlyMap<string, string> {
  const all = [...new Set(names)].sort()
  const identifiers = new Map<string, string>()
  const taken = new Set(all.filter(isIdentifier))
  for (const name of taken) identifiers.set(name, name)
  const others = all.filter((name) => !taken.has(name))
  const wanted = Map.groupBy(others, plainIdentifier)
  for (const name of others) {
    const plain = plainIdentifier(name)
    const isFree = wanted.get(plain)?.length === 1 && !taken.has(plain) && !reservedProperties.has(plain)
    const identifier = isFree ? plain : withHash(name, taken)
    taken.add(identifier)
    identifiers.set(name, identifier)
  }
  return identifiers
}

/** Properties that JavaScript itself reads from objects. A program cannot use them as tool names. */
export const reservedProperties = new Set('then toJSON toString valueOf constructor prototype __proto__'.split(' '))

const maxIdentifierLength = 64

const isIdentifier = (name: string) =>
  name.length <= maxIdentifierLength && /^[A-Za-z_$][\w$]*$/.test(name) && !reservedProperties.has(name)

const plainIdentifier = (name: string): string => {
  const letters = name.slice(0, maxIdentifierLength - 1).replaceAll(/[^\w$]/g, '_')
  return /^[A-Za-z_$]/.test(letters) ? letters : `_${letters}`
}

function withHash(name: string, taken: ReadonlySet<string>): string {
  const hash = createHash('sha256').update(name).digest('hex')
  for (let length = 6; ; length++) {
    const identifier = `${plainIdentifier(name.slice(0, 40))}_${hash.slice(0, length)}`
    if (!taken.has(identifier) || length > hash.length) return identifier
  }
}

/** Finds the tool that a program calls. The call itself is authorized when it is made. */
export async function resolveTool(view: View, { server, tool }: ProgramCall, wait: LookupOptions): Promise<Served> {
  if (server === undefined) return view.resolve('tool', tool, wait)
  const find = () => programNames(view.list('tool')).find(server, tool)
  const known = find()
  if (known) return known
  try {
    return await view.find('tool', serverNamed(view, server), tool, wait)
  } catch (thrown) {
    // `view.find` may have started the server, so its tools may be known now: look for the identifier again.
    const woken = find()
    if (woken) return woken
    throw thrown
  }
}

/** The exact name of a server, given that name or its identifier, even if the server's tools are not known yet. */
function serverNamed(view: View, spelling: string): string {
  const exact = programNames(view.list('tool')).server(spelling)
  if (exact !== undefined) return exact
  const identifiers = [...identifiersOf(view.servers().map(({ name }) => name))]
  return identifiers.find(([, identifier]) => identifier === spelling)?.[0] ?? spelling
}
