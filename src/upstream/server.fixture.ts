import { createManualClock } from '../../tests/fixtures/clock.ts'
import { configSchema, type ServerConfig } from '../config/schema.ts'
import type { Decide } from '../core/decision.ts'
import { ToolwayError } from '../core/errors.ts'
import { silentLog } from '../core/log.ts'
import type { DescriptorStore, Descriptors } from '../core/stores.ts'
import { createSeal } from '../lib/seal.ts'
import { initialize } from './connection/handshake.ts'
import type { StartQueue } from './connection/reconnect.ts'
import { RpcConnection } from './connection/rpc-connection.ts'
import { type ScriptedPeer, scriptedPeer } from './peer.fixture.ts'
import { UpstreamServer } from './server.ts'

function memoryStore(): DescriptorStore {
  const kept = new Map<string, Descriptors>()
  return {
    load: async (server, fingerprint) => kept.get(server + fingerprint),
    save: async (server, fingerprint, descriptors) => void kept.set(server + fingerprint, descriptors),
  }
}

interface Setup {
  /** The tools that the server lists on one of its connections, of which the first is 0. */
  readonly tools?: (connection: number) => readonly string[]
  /** The URIs of resources that clients can subscribe to. */
  readonly resources?: readonly string[]
  readonly store?: DescriptorStore
  readonly starts?: StartQueue
  readonly changes?: object
  readonly discovery?: 'startup' | 'runtime' | 'hybrid'
  readonly down?: () => boolean
  readonly version?: string
  readonly description?: () => string
  /** What each tool says of itself. */
  readonly annotations?: object
  readonly decide?: Decide
  readonly mayUseSome?: () => boolean
  /** Whether the server answers `tools/list` with an error. */
  readonly listFails?: () => boolean
  /** Whether the server reads messages but never answers. */
  readonly hangs?: () => boolean
  /** Delays the opening of one of the connections, of which the first is 0. */
  readonly opening?: (connection: number) => Promise<void>
  /** Runs before a call is answered. What it returns is the answer. */
  readonly called?: (peer: ScriptedPeer) => unknown
}

const health = { interval: 30_000, timeout: 5_000 }

/** A complete server source, with servers in memory. */
export function serverWith({ tools = () => ['read'], store = memoryStore(), changes = {}, ...setup }: Setup = {}) {
  const clock = createManualClock()
  const peers: ScriptedPeer[] = []
  const warnings: string[] = []
  const connects: object[] = []
  const log = {
    ...silentLog,
    warn: (_: object, message: string) => warnings.push(message),
    info: (facts: object, message: string) => void (message === 'server is connected' && connects.push(facts)),
  }
  const parsed = configSchema.parse({ mcpServers: { files: { command: 'x', ...changes } } })
  const config = parsed.mcpServers.files as ServerConfig
  const definition = (name: string) => ({
    name,
    ...(setup.description && { description: setup.description() }),
    ...(setup.annotations && { annotations: setup.annotations }),
    inputSchema: { type: 'object' },
  })
  const server = new UpstreamServer({
    name: 'files',
    config,
    defaults: { timeoutMs: 30_000, refreshMs: 60_000, discovery: setup.discovery ?? 'hybrid', health },
    policy: {
      ...(setup.decide && { decide: setup.decide }),
      ...(setup.mayUseSome && { mayUseSome: setup.mayUseSome }),
    },
    host: {
      store,
      ...(setup.starts && { starts: setup.starts }),
      servedUris: () => (uri) => uri,
      seal: createSeal('a secret for the test'),
    },
    async connect({ capabilities, ...scope }, signal) {
      if (setup.down?.()) throw new ToolwayError('SERVER_UNAVAILABLE', 'files is down.')
      const number = peers.length
      const peer = scriptedPeer({
        initialize: () => ({
          protocolVersion: setup.version ?? '2025-06-18',
          capabilities: { tools: { listChanged: true }, ...(setup.resources && { resources: { subscribe: true } }) },
          serverInfo: { name: 'Files' },
        }),
        'tools/list'() {
          if (setup.listFails?.()) return { error: { code: -32603, message: 'offline' } }
          return setup.hangs?.() ? undefined : { tools: tools(number).map(definition) }
        },
        'resources/list': () => ({ resources: setup.resources?.map((uri) => ({ uri, name: uri })) ?? [] }),
        'resources/templates/list': () => ({ resourceTemplates: [] }),
        'resources/subscribe': () => ({}),
        'tools/call'({ params }, called) {
          return setup.called?.(called) ?? { content: [], echo: params }
        },
        ping: () => (setup.hangs?.() ? undefined : {}),
      })
      peers.push(peer)
      await setup.opening?.(number)
      const connection = await RpcConnection.open(peer.transport, { server: 'files', ...scope, log }, signal)
      const identity = { name: 'toolway', version: '1' }
      const options = { server: 'files', identity, capabilities, clock, log, signal }
      return { connection, handshake: await initialize(connection, options), identity }
    },
    clock,
    log,
  })
  const names = () => server.entries().map(({ name }) => name)
  return { server, clock, peers, names, store, warnings, connects }
}
