import type { Config, EndpointConfig } from '../config/schema.ts'
import type { Denial } from '../core/decision.ts'
import type { Entry } from '../core/entry.ts'
import { metaSource } from '../core/source.ts'
import { type CompilePattern, compilePatterns, createPatternCompiler, matchFirst, type Patterns } from './patterns.ts'

/** What one endpoint serves. */
interface EndpointGroup {
  readonly isWhole: boolean
  readonly servers: Patterns<true>
  readonly tools: readonly { readonly isServer: (server: string) => boolean; readonly names: Patterns<true> }[]
}

/** The endpoints for groups of tools (V15). A caller at an endpoint may use what it serves, and its agent is allowed. */
export class EndpointGroups {
  readonly #groups: ReadonlyMap<string, EndpointGroup>

  constructor(endpoints: Config['endpoints']) {
    const compile = createPatternCompiler()
    this.#groups = new Map(Object.entries(endpoints).map(([name, endpoint]) => [name, compileGroup(endpoint, compile)]))
  }

  /**
   * The denial if an entry is not served at an endpoint. Nothing is served at one that is no longer configured. With
   * `inCode`, programs are the caller's way to call tools.
   */
  denialOf(
    endpoint: string,
    { kind, server, name }: Pick<Entry, 'kind' | 'server' | 'name'>,
    inCode: boolean,
  ): Denial | undefined {
    const group = this.#groups.get(endpoint)
    if (server === metaSource && group) return undefined
    if (group && servesEntry(group, { kind, server, name })) return undefined
    if (group && inCode && server === 'native' && name === 'execute_code' && kind === 'tool') return undefined
    return notServed(endpoint, `${server}.${name}`)
  }

  /** The denial if nothing on a server is served at an endpoint. */
  closedAt(endpoint: string, server: string, inCode: boolean): Denial | undefined {
    const group = this.#groups.get(endpoint)
    const isNeeded = server === metaSource || (inCode && server === 'native')
    if (group && (isNeeded || servesServer(group, server))) return undefined
    return notServed(endpoint, `the server ${server}`)
  }
}

const compileGroup = ({ servers, tools }: EndpointConfig, compile: CompilePattern): EndpointGroup => ({
  isWhole: servers.length === 0 && Object.keys(tools).length === 0,
  servers: compilePatterns(servers, compile, isListed),
  tools: Object.entries(tools).map(([server, names]) => ({
    isServer: compile(server),
    names: compilePatterns(names, compile, isListed),
  })),
})

const isListed = (): true => true

const servesServer = (group: EndpointGroup, server: string): boolean =>
  group.isWhole ||
  matchFirst(group.servers, server) !== undefined ||
  group.tools.some(({ isServer }) => isServer(server))

const servesEntry = (group: EndpointGroup, { kind, server, name }: Pick<Entry, 'kind' | 'server' | 'name'>): boolean =>
  group.isWhole ||
  matchFirst(group.servers, server) !== undefined ||
  (kind === 'tool' &&
    group.tools.some(({ isServer, names }) => isServer(server) && matchFirst(names, name) !== undefined))

const notServed = (endpoint: string, what: string): Denial => ({
  allowed: false,
  code: 'DENIED_BY_POLICY',
  rule: `endpoints.${endpoint}`,
  auditReason: 'not_at_endpoint',
  reason: `The endpoint ${endpoint} does not serve ${what}; use something that it lists.`,
})
