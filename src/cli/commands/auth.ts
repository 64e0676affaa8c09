import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config, ServerConfig } from '../../config/schema.ts'
import { systemClock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { type KeptGrant, type OAuth, openOAuth, signIn } from '../../runtime/oauth-sign-in.ts'
import type { OptionsOf } from '../command-table.ts'
import { createOutput, invalidAsUsage, isInteractive, type Output, type Shell, UsageError } from '../kit.ts'
import { load, openLog } from '../load.ts'

type AuthOptions = OptionsOf<'auth'>

/** Signs in to a server with OAuth, deletes its grant, or lists the grants. */
export async function auth(shell: Shell, name: string | undefined, options: AuthOptions): Promise<void> {
  const output = createOutput(shell, options.json)
  const loaded = await load(shell, options)
  const log = openLog(shell, options.log ?? 'error')
  await using oauth = await openOAuth(loaded.config, { clock: systemClock, log })
  if (options.list) await printGrants(oauth, loaded.config, name, output)
  else if (name === undefined) throw unnamed(loaded)
  else if (options.logout) await signOut(oauth, name, options, output)
  else await signInTo(oauth, name, serverOf(loaded, name), shell, options)
}

async function signInTo(oauth: OAuth, server: string, config: ServerConfig, shell: Shell, options: AuthOptions) {
  const output = createOutput(shell, options.json)
  if (config.transport === 'stdio') {
    const hint = `Put the credentials that it needs into mcpServers.${server}.env; see its documentation.`
    throw new UsageError(`${server} is a program that Toolway starts; it does not sign in with OAuth.`, hint)
  }
  const { principal } = options
  if (principal !== undefined && !isPersonal(config)) {
    const hint = `Set mcpServers.${server}.auth.perPrincipal, or omit --principal.`
    throw new UsageError(`All calls to ${server} use one grant.`, hint)
  }
  using pasting = options.paste || isInteractive(shell) ? createPasting(shell, output) : undefined
  const request: Parameters<typeof signIn>[0] = {
    oauth,
    server,
    config,
    principal,
    browse(url, issuer) {
      pasting?.begin(url)
      if (options.json) return output.value({ url, issuer })
      output.note(`To let Toolway use ${server}, sign in at ${issuer}:\n\n  ${url}\n`)
      output.note(output.paintNote('dim', `Waiting for the sign-in …${pasting ? `\n${elsewhere}` : ''}`))
      if (options.browser && !options.paste && isInteractive(shell)) openBrowser(url)
    },
    withinMs: options.timeout,
    clock: systemClock,
    signal: pasting ? AbortSignal.any([shell.interrupted, pasting.left]) : shell.interrupted,
  }
  const granted = await invalidAsUsage(() => signIn(request))
  if (options.json) output.value({ server, principal: principal ?? null, ...granted })
  else output.print(`Signed in to ${server}. A running gateway will use the new sign-in within a few seconds.`)
}

const elsewhere =
  "If your browser is on another machine, the last page will fail to load: paste that page's address here."

async function signOut(oauth: OAuth, server: string, { principal, json }: AuthOptions, output: Output): Promise<void> {
  const forgotten = await oauth.forget(server, principal)
  if (json) output.value({ server, forgotten })
  else if (forgotten === 0) output.print(`No grant is stored for ${server}.`)
  else output.print(`Deleted the grant for ${server}. A running gateway stops using it within a few seconds.`)
}

const isPersonal = (config: ServerConfig): boolean =>
  config.transport !== 'stdio' && config.auth?.type === 'oauth' && config.auth.perPrincipal

function serverOf({ config: { mcpServers } }: LoadedConfig, name: string): ServerConfig {
  const found = Object.hasOwn(mcpServers, name) ? mcpServers[name] : undefined
  if (found) return found
  const hint = didYouMean(name, Object.keys(mcpServers))
  throw new ToolwayError('SERVER_NOT_FOUND', `There is no server ${JSON.stringify(name)}${hint}`)
}

function unnamed({ config: { mcpServers } }: LoadedConfig): UsageError {
  const names = Object.entries(mcpServers).flatMap(([name, server]) =>
    server.transport !== 'stdio' && server.auth?.type === 'oauth' ? [name] : [],
  )
  const which =
    names.length === 0 ? 'No server in this configuration uses OAuth.' : `Servers that use OAuth: ${names.join(', ')}.`
  return new UsageError('Specify the server to sign in to.', `${which} \`toolway auth --list\` lists the grants.`)
}

/** The program that opens a URL on each operating system. It gets the URL as one argument, without a shell. */
const programs: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Opens the page in a browser. A failure is ignored, because the address is also printed. */
function openBrowser(url: string): void {
  const [program, ...args] = programs[process.platform] ?? ['xdg-open']
  if (!/^https?:/.test(url)) return
  spawn(program, [...args, url], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref()
}

/** Lists the stored grants, without tokens. */
async function printGrants(oauth: OAuth, config: Config, name: string | undefined, output: Output): Promise<void> {
  const all = await oauth.list()
  const grants = name === undefined ? all : all.filter(({ server }) => server === name)
  if (output.json) return output.value({ grants: grants.map(asJson) })
  if (grants.length === 0) return output.note('No grants are stored yet; sign in to a server first.')
  output.table<KeptGrant>(grants, [
    { title: 'SERVER', value: ({ server }) => server, whole: true },
    { title: 'PRINCIPAL', value: ({ principal }) => principal },
    { title: 'ISSUER', value: ({ issuer }) => issuer },
    { title: 'SCOPES', value: ({ scopes }) => scopes.join(' ') },
    { title: 'STATE', value: (grant) => stateOf(grant, config) },
  ])
}

function stateOf({ server, url, expiresAt, renewable }: KeptGrant, { mcpServers }: Config): string {
  const configured = mcpServers[server]
  if (!configured || configured.transport === 'stdio' || new URL(configured.url).href !== url) return 'no longer used'
  if (renewable || expiresAt === undefined) return 'valid'
  return expiresAt > systemClock.now() ? `until ${new Date(expiresAt).toISOString()}` : 'expired'
}

const asJson = ({ expiresAt, grantedAt, ...grant }: KeptGrant) => ({
  ...grant,
  principal: grant.principal === '' ? null : grant.principal,
  grantedAt: new Date(grantedAt).toISOString(),
  expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
})

/** Reads the redirect address that the user pastes when the browser is running on another machine. */
function createPasting(shell: Shell, output: Output) {
  const leaving = new AbortController()
  const done = new AbortController()
  return {
    /** Aborted by Ctrl+C, which readline receives as a key instead of a signal. */
    left: leaving.signal,
    /** Starts reading lines; each valid address is sent to our redirect endpoint, which checks it. */
    begin(signInUrl: string) {
      const redirect = new URL(new URL(signInUrl).searchParams.get('redirect_uri') ?? '')
      const terminal = isInteractive(shell)
      const echo = terminal ? shell.stderr : undefined
      const lines = createInterface({ input: shell.stdin, output: echo, terminal, signal: done.signal })
      lines.on('SIGINT', () => leaving.abort(new ToolwayError('CANCELLED', 'Interrupted.')))
      lines.on('line', async (line) => {
        if (line.trim() !== '' && !(await isTaken(line, redirect))) {
          output.note(`This is not the expected address. Paste the whole address; it begins with ${redirect.href}?`)
        }
      })
    },
    [Symbol.dispose]: () => done.abort(),
  }
}

/** Whether the redirect endpoint accepted the pasted address. */
async function isTaken(line: string, redirect: URL): Promise<boolean> {
  const { search } = URL.canParse(line.trim()) ? new URL(line.trim()) : { search: '' }
  if (search === '') return false
  const place = new URL(redirect)
  place.search = search
  const answer = await fetch(place).catch(() => undefined)
  await answer?.body?.cancel()
  return answer !== undefined && answer.status !== 404
}
