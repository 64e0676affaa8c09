import type { Served } from '../../core/access.ts'
import { identifiersOf } from './identifiers.ts'

/** How programs spell the tools of a view. */
export interface Names {
  /** The tool that a program means by these two words: exact names first, then identifiers. */
  find(server: string, tool: string): Served | undefined
  /** The exact name of the server that a program means by a word. */
  server(spelling: string): string | undefined
  identifiers(served: Served): { readonly server: string; readonly tool: string }
}

const known = new WeakMap<readonly Served[], Names>()

/** Made once per list: lists are the same object as long as nothing has changed. */
export function namesOf(tools: readonly Served[]): Names {
  const made = known.get(tools) ?? createNames(tools)
  known.set(tools, made)
  return made
}

interface OfServer {
  readonly exact: ReadonlyMap<string, Served>
  /** Both ways, made when somebody first needs them: most servers are never asked. */
  readonly spelt: () => Spelt
}

interface Spelt {
  readonly identifiers: ReadonlyMap<string, string>
  readonly names: ReadonlyMap<string, string>
}

function createNames(tools: readonly Served[]): Names {
  const servers = new Map<string, OfServer>()
  for (const [server, served] of Map.groupBy(tools, ({ entry }) => entry.server)) {
    const exact = new Map(served.map((one) => [one.entry.name, one]))
    servers.set(server, { exact, spelt: once(() => spell(exact.keys())) })
  }
  const { identifiers, names } = spell(servers.keys())
  const serverOf = (spelling: string) => (servers.has(spelling) ? spelling : names.get(spelling))
  return {
    server: serverOf,
    find(server, tool) {
      const own = servers.get(serverOf(server) ?? '')
      return own?.exact.get(tool) ?? own?.exact.get(own.spelt().names.get(tool) ?? tool)
    },
    identifiers: ({ entry: { server, name } }) => ({
      server: identifiers.get(server) ?? server,
      tool: servers.get(server)?.spelt().identifiers.get(name) ?? name,
    }),
  }
}

function spell(exact: Iterable<string>): Spelt {
  const identifiers = identifiersOf(exact)
  return { identifiers, names: new Map([...identifiers].map(([name, identifier]) => [identifier, name])) }
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
