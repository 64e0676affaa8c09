import * as z from 'zod'
import type { Redactor } from '../../audit/redact/redactor.ts'
import type { Config } from '../../config/schema.ts'
import type { Caller } from '../../core/call.ts'
import { settles } from '../../core/deadline.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import { tokenCost } from '../../core/tokens.ts'
import { asRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import type { ServerAction } from '../../runtime/cluster.ts'
import type { Generation } from '../../runtime/generation.ts'
import type { UpstreamServer } from '../../upstream/server.ts'
import { redactConfig, serverTarget } from '../config/config.ts'
import { type AdminContext, auditOperation } from '../context.ts'
import type { GrantView, RefreshedServers, ServerDetail, ServerOffer, ServerView, SignInView } from '../contract.ts'
import type { VisibleFigures } from '../overview/figures.ts'
import { adminRoute, type Route, userRoute } from '../router.ts'
import * as schema from '../tools/schema.ts'
import { visibleServers, visibleTools } from '../tools/visibility.ts'
import { callbackOf } from './oauth-callback.ts'

export type ServersService = ReturnType<typeof createServersAdmin>

/** How long a response waits for an action to finish. After that, clients poll the server's state. */
const maxActionWaitMs = 15_000
const maxConnections = 100
/** How many servers are refreshed at the same time. Refreshing may start a process. */
const maxRefreshing = 8
const maxOffers = 500

export function createServersAdmin(context: AdminContext, figures: VisibleFigures) {
  const { current, cluster, audit } = context
  const serverOf = (name: string): UpstreamServer | undefined => current().servers.get(name)?.server

  /** Describes a server. Only admins see its process. */
  const viewServer = (caller: Caller, { name, status, tools }: ServerSummary): ServerView => {
    const control = serverOf(name)?.control
    const { era = null, protocolVersion = null, latencyMs = null, lastError = null } = status
    const { health, reason, since, description, transport, breaker, findings = [] } = status
    return {
      ...{ name, description, health, reason, since, transport, era, protocolVersion },
      ...{ breaker, tools, latencyMs, lastError, findings },
      process: (caller.admin && control?.process) || null,
      calls: figures.of(caller, 'server', name),
      paused: control?.paused ?? false,
    }
  }

  return {
    servers: (caller: Caller): readonly ServerView[] =>
      visibleServers(caller, current()).map((server) => viewServer(caller, server)),
    server(caller: Caller, name: string): ServerDetail {
      const generation = current()
      return {
        ...viewServer(caller, findServer(caller, name, generation)),
        callsSince: figures.since(caller),
        toolTokens: tokenCost(visibleTools(caller, generation).filter(({ entry }) => entry.server === name)),
        offers: offersOf(caller, name, generation),
        ...(caller.admin ? internals(name, generation) : hiddenInternals),
      }
    },
    /** Resolves when the action is done, or after a maximum waiting time. */
    async control(caller: Caller, name: string, action: ServerAction): Promise<ServerView> {
      findServer(caller, name, current())
      if (!serverOf(name)) throw isBuiltIn(name)
      if (current().loaded.config.mcpServers[name]?.disabled) {
        const remedy = `remove mcpServers.${name}.disabled and reload`
        throw invalidArguments(`${name} is disabled in the configuration: ${remedy}.`)
      }
      const operation = { operation: `${action}_server`, server: name }
      await auditOperation(audit, caller, operation, () => settleSoon(cluster.control(name, action), context))
      return viewServer(caller, findServer(caller, name, current()))
    },
    /** Refreshes the lists of all servers that are turned on, a few at a time. Resolves as `control` does. */
    async refreshServers(caller: Caller): Promise<RefreshedServers> {
      const { mcpServers } = current().loaded.config
      const isOn = ({ name, control }: UpstreamServer) => !mcpServers[name]?.disabled && !control.paused
      const all = visibleServers(caller, current()).flatMap(({ name }) => serverOf(name) ?? [])
      const waiting = all.filter(isOn)
      const servers = waiting.length
      const failed: string[] = []
      let running = servers
      const refreshNext = async () => {
        for (let server = waiting.shift(); server; server = waiting.shift()) {
          const { name } = server
          const refresh = () => cluster.control(name, 'refresh')
          await auditOperation(audit, caller, { operation: 'refresh_server', server: name }, refresh)
          // A refresh does not reject; the server's state says why it failed.
          const { health } = visibleServers(caller, current()).find((one) => one.name === name)?.status ?? {}
          if (health === 'unhealthy' || health === 'needs-auth') failed.push(name)
          running--
        }
      }
      await settleSoon(Promise.all(Array.from({ length: maxRefreshing }, refreshNext)), context)
      return { servers, failed, running }
    },
    ...createSignIns(context),
  }
}

function createSignIns(context: AdminContext) {
  const { current, cluster, audit, oauth } = context

  const grants = async (name: string): Promise<readonly GrantView[]> =>
    (await oauth.list())
      .filter(({ server }) => server === name)
      .map(({ principal, issuer, scopes, grantedAt, expiresAt = null, renewable }) => ({
        principal: principal === '' ? null : principal,
        ...{ issuer, scopes, grantedAt, expiresAt, renewable },
      }))

  return {
    grants,
    /** Starts an OAuth sign-in that ends with a redirect to `redirect`. */
    async signIn(caller: Caller, name: string, redirect: URL): Promise<SignInView> {
      findServer(caller, name, current())
      const config = current().loaded.config.mcpServers[name]
      if (!config) throw isBuiltIn(name)
      const action = { operation: 'sign_in_server', server: name }
      return { url: await auditOperation(audit, caller, action, () => oauth.beginHere(name, config, redirect)) }
    },
    /** Deletes a server's OAuth grants, or that of one principal. Returns those that are left. */
    async signOut(caller: Caller, name: string, principal?: string): Promise<readonly GrantView[]> {
      findServer(caller, name, current())
      const whose = principal === undefined ? {} : { arguments: { principal } }
      const action = { operation: 'sign_out_server', server: name, ...whose }
      await auditOperation(audit, caller, action, () => oauth.forget(name, principal))
      // Without a grant this fails, and then the server's state says that it needs a sign-in.
      await settleSoon(cluster.control(name, 'refresh'), context).catch(() => {})
      return grants(name)
    },
    /** Completes a sign-in with the query parameters from the redirect, and returns the server's name. */
    async signedIn(params: URLSearchParams): Promise<string> {
      const name = await oauth.finishHere(params)
      // Refresh the server's lists now: earlier attempts failed because the sign-in was missing.
      await settleSoon(cluster.control(name, 'refresh'), context)
      return name
    },
  }
}

async function settleSoon(work: Promise<unknown>, { clock }: Pick<AdminContext, 'clock'>): Promise<void> {
  if (await settles(work, maxActionWaitMs, clock)) await work
}

function findServer(caller: Caller, name: string, generation: Generation): ServerSummary {
  const servers = visibleServers(caller, generation)
  const found = servers.find((server) => server.name === name)
  if (found) return found
  const names = servers.map((server) => server.name)
  throw new ToolwayError('SERVER_NOT_FOUND', `There is no server ${quote(name)}${didYouMean(name, names)}`)
}

type Internals = Pick<ServerDetail, 'launch' | 'connections' | 'events' | 'stderr'>

const hiddenInternals: Internals = { launch: null, connections: null, events: [], stderr: [] }

function internals(name: string, { servers, loaded, redactor }: Generation): Internals {
  const control = servers.get(name)?.server.control
  if (!control) return hiddenInternals
  const open = control.describe(maxConnections)
  return {
    launch: launchOf(name, loaded.config, redactor),
    connections: {
      total: control.connections,
      open: open.map(({ pid = null, openedAt = null, principal = null, ...rest }) => ({
        ...rest,
        pid,
        openedAt,
        principal,
      })),
    },
    events: control
      .events()
      .map(({ pid = null, reason, ...event }) => ({ ...event, pid, reason: reason ? redactor.text(reason) : null })),
    stderr: control.stderr(),
  }
}

function launchOf(name: string, config: Config, redactor: Redactor): string | null {
  const server = config.mcpServers[name]
  if (!server) return null
  const { mcpServers } = redactConfig({ ...config, mcpServers: { [name]: server } }, redactor)
  return serverTarget(asRecord(asRecord(mcpServers)[name]))
}

/** The resources, resource templates and prompts of a server that the caller may see. */
function offersOf(caller: Caller, server: string, { catalog }: Generation): ServerOffer[] {
  const view = caller.admin ? undefined : catalog.view(caller)
  return (['resource', 'template', 'prompt'] as const)
    .flatMap((kind) => (view ? view.list(kind) : catalog.everything(kind)).map((served) => ({ kind, ...served })))
    .filter(({ entry }) => entry.server === server)
    .slice(0, maxOffers)
    .map(({ kind, name, definition: { uri, uriTemplate, description = '', ...definition } }) => ({
      kind,
      name: typeof definition.name === 'string' ? definition.name : name,
      uri: [uri, uriTemplate].find((text) => typeof text === 'string') ?? null,
      description,
    }))
}

const isBuiltIn = (name: string) => invalidArguments(`${name} is built into Toolway and cannot be controlled.`)

const serverActions: Readonly<Record<ServerAction, string>> = {
  restart: "Restarts a server's process or connection",
  enable: 'Enables a server',
  disable: 'Disables a server: it lists nothing and rejects calls until it is enabled or restarted',
  refresh: "Refreshes a server's tools, resources and prompts",
}

export const serversRoutes = (servers: ServersService): readonly Route[] => [
  userRoute('GET', 'servers', 'All servers and their state', {
    answer: z.array(schema.serverView),
    run: ({ caller }) => servers.servers(caller),
  }),
  userRoute('GET', 'servers/{name}', 'One server: what it offers, its connections, history and output', {
    answer: schema.serverDetail,
    run: ({ caller, target }) => servers.server(caller, target),
  }),
  adminRoute('POST', 'refresh', 'Refreshes the tools, resources and prompts of all servers', {
    answer: schema.refreshedServers,
    run: ({ caller }) => servers.refreshServers(caller),
  }),
  ...Object.entries(serverActions).map(([action, summary]) =>
    adminRoute('POST', `servers/{name}/${action}`, summary, {
      answer: schema.serverView,
      run: ({ caller, target }) => servers.control(caller, target, action as ServerAction),
    }),
  ),
  adminRoute('GET', 'servers/{name}/grants', 'The OAuth grants that are stored for a server, without tokens', {
    answer: z.array(schema.grantView),
    run: ({ target }) => servers.grants(target),
  }),
  adminRoute('POST', 'servers/{name}/sign-out', "Deletes a server's OAuth grants; returns those that are left", {
    body: schema.signOutRequest,
    answer: z.array(schema.grantView),
    run: ({ caller, target, body }) => servers.signOut(caller, target, body.principal),
  }),
  adminRoute('POST', 'servers/{name}/sign-in', 'Starts an OAuth sign-in to a server; returns the URL to open', {
    answer: schema.signInView,
    run: ({ caller, target, request }) => servers.signIn(caller, target, callbackOf(request)),
  }),
]
