import { isSecretName } from '../core/secret-name.ts'
import { annotatedReads } from '../core/tool-overrides.ts'
import { isLoopback } from '../lib/url.ts'
import { referencesIn, variableOf } from './interpolate.ts'
import { ConfigError, type ConfigProblem } from './problems.ts'
import type { Config, ServerConfig } from './schema.ts'
import { type ConfigTree, find, keyPath, type Path } from './tree.ts'

/** Warnings about settings that are valid but probably unintended. The policy module checks rules and limits. */
export function configWarnings(config: Config, tree: ConfigTree): string[] {
  return [
    ...openToAll(config),
    ...neverMatches(config),
    ...unreachableHosts(config),
    ...unknownModel(config),
    ...refusedNames(config),
    ...uselessAliases(config),
    ...withoutEffect(config, tree),
    ...inArguments(config, tree),
    ...argumentsInCommand(config),
    ...unshared(config),
    ...cachesNothing(config),
  ]
}

/** Warns if the gateway is open to other machines, even if `server.allowUnauthenticated` permits this, or to guesses. */
function openToAll(config: Config): string[] {
  if (hasShortToken(config))
    return [`auth.token has fewer than ${minTokenLength} characters and could be guessed; use auth.token: generated`]
  if (!isOpenToOthers(config)) return []
  return [`auth.token is none and server.host is ${config.server.host}: anyone who can reach it may use every tool`]
}

/** Warns about hosts and origins that no request can have. Requests must have exactly one of those listed. */
function neverMatches({ server: { allowedHosts, allowedOrigins } }: Config): string[] {
  const warning = (key: string, value: string, meant: string | undefined) =>
    `server.${key}: ${value} never matches; ${meant ? `did you mean ${meant}?` : 'list each one, because patterns are not supported'}`
  const hosts = allowedHosts.filter((host) => /[\s/*?#@]/.test(host))
  const origins = allowedOrigins.filter((origin) => originOf(origin) !== origin.toLowerCase().replace(/\/$/, ''))
  return [
    ...hosts.map((host) =>
      warning('allowedHosts', host, (originOf(host) ?? originOf(`http://${host}`))?.split('//')[1]),
    ),
    ...origins.map((origin) => warning('allowedOrigins', origin, originOf(origin) ?? originOf(`https://${origin}`))),
  ]
}

/** Warns about entries that are not the host of any URL, such as one with a port. Ports are not restricted. */
const unreachableHosts = ({ sandbox: { allowNetwork } }: Config): string[] =>
  allowNetwork.flatMap((entry) => {
    const meant = [entry, `http://${entry}`, `http://[${entry}]`].flatMap(hostOf)[0]
    if (meant === entry || (meant === undefined && entry.includes('*'))) return []
    const advice = meant ? `did you mean ${meant}, with any port?` : 'list host names'
    return [`sandbox.allowNetwork: ${entry} never matches; ${advice}`]
  })

function hostOf(url: string): readonly string[] {
  const hostname = URL.parse(url)?.hostname
  return hostname ? [hostname] : []
}

/** The Origin header that browsers send for a page; undefined if there is none. */
function originOf(page: string): string | undefined {
  if (page === 'null') return page
  if (page.includes('*') || !URL.canParse(page)) return undefined
  const { protocol, host } = new URL(page)
  return host === '' ? undefined : `${protocol}//${host}`.toLowerCase()
}

function unknownModel({ models, chat }: Config): string[] {
  if (chat.model === undefined || Object.hasOwn(models, chat.model)) return []
  return [`chat.model: model ${chat.model} is not defined in models`]
}

const refusedNames = ({ naming }: Config): string[] =>
  /[:.]/.test(naming.separator)
    ? [
        `naming.separator: some model APIs refuse names with ${naming.separator}, so use __ if a client reports invalid tool names`,
      ]
    : []

/** Warns about aliases for servers that do not exist, and about names that several tools should have. */
function uselessAliases({ naming: { strategy, aliases }, mcpServers }: Config): string[] {
  if (strategy !== 'custom') return []
  const entries = Object.entries(aliases)
  const serverOf = (tool: string) => tool.slice(0, tool.indexOf('.'))
  const isKnown = (server: string) => server === 'sink' || Object.hasOwn(mcpServers, server)
  const unknown = entries.filter(([tool]) => !isKnown(serverOf(tool)))
  const shared = [...Map.groupBy(entries, ([, alias]) => alias)].filter(([, { length }]) => length > 1)
  return [
    ...unknown.map(([tool]) => `naming.aliases: ${tool} has no effect, because mcpServers has no ${serverOf(tool)}`),
    ...shared.map(([alias, tools]) => {
      const names = tools.map(([tool]) => tool).join(', ')
      return `naming.aliases: ${names} cannot all have the name ${alias}; all but one are named as with prefix`
    }),
  ]
}

/** Warns about settings without effect: headers for a program, and arguments or environment variables for a URL. */
function withoutEffect({ mcpServers }: Config, tree: ConfigTree): string[] {
  return Object.entries(mcpServers).flatMap(([name, { transport }]) => {
    const unused = transport === 'stdio' ? ['headers'] : ['args', 'env', 'cwd']
    const why = transport === 'stdio' ? 'a server with a command' : 'a server with a url'
    return unused.flatMap((key) => {
      const part = find(tree, ['mcpServers', name, key])
      const empty =
        !part ||
        (part.kind === 'branch' && part.members.size === 0) ||
        (part.kind === 'list' && part.items.length === 0)
      return empty ? [] : [`mcpServers.${name}.${key} has no effect on ${why}`]
    })
  })
}

/** Warns about secrets in arguments, because all local users can see the arguments of running processes (B6). */
function inArguments({ mcpServers }: Config, tree: ConfigTree): string[] {
  return Object.entries(mcpServers).flatMap(([name, server]) => {
    if (server.transport !== 'stdio' || server.disabled) return []
    const env = keyPath(['mcpServers', name, 'env'])
    return server.args.flatMap((_, index) => {
      const path = ['mcpServers', name, 'args', index]
      const secret = secretAt(server.args, index, find(tree, path))
      const advice = `pass it in ${env} instead, if the server supports it`
      return secret === undefined
        ? []
        : [`${keyPath(path)}: all users of this machine can see the value of ${secret} (with \`ps\`); ${advice}`]
    })
  })
}

/** Warns about arguments in `command`. A path may contain spaces, but a program's name or an option shows arguments. */
function argumentsInCommand({ mcpServers }: Config): string[] {
  return Object.entries(mcpServers).flatMap(([name, server]) => {
    const [program = '', ...words] = server.transport === 'stdio' ? server.command.trim().split(/\s+/) : []
    const isPath = /[/\\]/.test(program) && !words.some((word) => word.startsWith('-'))
    if (words.length === 0 || isPath) return []
    const key = `mcpServers.${name}`
    // Do not show the arguments: they may contain secrets.
    return [
      `${key}.command is one program, without arguments; write command: ${program}, and the other words in ${key}.args`,
    ]
  })
}

/** The reference to a secret in an argument. It is recognized by its scheme, its name, or the option it belongs to. */
function secretAt(args: readonly string[], index: number, written: ConfigTree | undefined): string | undefined {
  if (written?.kind !== 'leaf') return undefined
  const word = String(written.value)
  const option = /^--?([A-Za-z][\w-]*)$/.exec(args[index - 1] ?? '')?.[1] ?? ''
  const own = /^-{0,2}([A-Za-z][\w-]*)[=:]/.exec(word)?.[1] ?? ''
  const password = /:\/\/[^/\s:@]*:[^/\s@]+@/.test(args[index] ?? '')
  const belongs = password || isSecretName(option) || isSecretName(own)
  const found = referencesIn(word).find(
    (body) => belongs || /^(?:file|exec):/.test(body) || isSecretName(variableOf(body) ?? ''),
  )
  // Show only the name: a default value or a command line may contain the secret.
  return found && `\${${variableOf(found) ?? found.replace(/(?<=^\w+:).*/s, '…')}}`
}

/** Warns if no tool is known to be read-only: the cache can then store only resources and prompts. */
function cachesNothing(config: Config): string[] {
  if (!config.cache.enabled || cachedTools(config).length > 0 || Object.keys(config.mcpServers).length === 0) return []
  const help = "list tools in cache.tools or in their server's readTools, or set trustAnnotations"
  return [`cache.enabled has no effect on tools, because none is known to be read-only; ${help}`]
}

/** Warns if `stores.key` is missing, so that replicas cannot share OAuth sign-ins, or has no effect without Redis. */
function unshared({ stores: { redis, key }, mcpServers }: Config): string[] {
  const sharing = redis && !redis.disabled
  if (!sharing) return key === undefined ? [] : ['stores.key has no effect without stores.redis']
  const signedIn = Object.keys(mcpServers).filter((name) => usesOAuth(mcpServers[name] as ServerConfig))
  if (key !== undefined || signedIn.length === 0) return []
  const servers = signedIn.join(', ')
  return [
    `stores.redis is set without stores.key: each replica signs in to ${servers} separately; set the same stores.key in all replicas to share the sign-in`,
  ]
}

const usesOAuth = (server: ServerConfig): boolean => server.transport !== 'stdio' && server.auth?.type === 'oauth'

/** Describes which tools are cached and why. Returns an empty list if the cache is disabled. */
export function cachedTools({ cache, mcpServers }: Pick<Config, 'cache' | 'mcpServers'>): readonly string[] {
  if (!cache.enabled) return []
  const servers = Object.entries(mcpServers).filter(([, { disabled }]) => !disabled)
  return [
    ...cache.tools.map((tool) => `${tool} (cache.tools)`),
    ...servers.flatMap(([name, { readTools, tools, trustAnnotations }]) => [
      ...readTools.map((tool) => `${name}.${tool} (mcpServers.${name}.readTools)`),
      ...annotatedReads(tools).map((tool) => `${name}.${tool} (mcpServers.${name}.tools)`),
      ...(trustAnnotations ? [`tools of ${name} with readOnlyHint (mcpServers.${name}.trustAnnotations)`] : []),
    ]),
  ]
}

const isOpenToOthers = ({ auth, server }: Pick<Config, 'auth' | 'server'>): boolean =>
  auth.token === 'none' && !isLoopback(server.host)

/** Minimum length of a token; shorter ones could be guessed. */
export const minTokenLength = 16

export const hasShortToken = ({ auth: { token } }: Pick<Config, 'auth'>): boolean =>
  token !== 'generated' && token !== 'none' && token.length < minTokenLength

/**
 * Throws if other machines could use the gateway with a guessed token, or without a credential and
 * `server.allowUnauthenticated` is not set. Pass the effective configuration, which can differ from the files: `--host` overrides `server.host`, and some keys
 * apply only after a restart.
 */
export function refuseUnauthenticated({
  config,
  problemAt,
}: {
  readonly config: Pick<Config, 'auth' | 'server'>
  problemAt(path: Path, message: string): ConfigProblem
}): void {
  const { server } = config
  if (hasShortToken(config) && !isLoopback(server.host)) {
    const sentence = `with fewer than ${minTokenLength} characters, it can be guessed by anyone who can reach ${server.host}; set auth.token: generated, or server.host: 127.0.0.1`
    throw new ConfigError([problemAt(['auth', 'token'], sentence)])
  }
  if (!isOpenToOthers(config) || server.allowUnauthenticated) return
  const sentence =
    `with none, anyone who can reach ${server.host} may use every tool without a credential; set auth.token: generated, ` +
    'or server.host: 127.0.0.1, or, if this is intended, server.allowUnauthenticated: true'
  throw new ConfigError([problemAt(['auth', 'token'], sentence)])
}
