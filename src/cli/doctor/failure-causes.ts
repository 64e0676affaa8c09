import { statSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import type { ServerConfig } from '../../config/schema.ts'
import { commandLine, shellQuote } from '../../lib/message-text.ts'
import { findProgram, isExecutable, isExistingFile } from '../../process/programs.ts'
import type { ProbeFailure } from '../../runtime/probe-server.ts'
import type { ProbedServer } from './finding.ts'

type StdioServer = Extract<ServerConfig, { transport: 'stdio' }>
type RemoteServer = Exclude<ServerConfig, { transport: 'stdio' }>

interface FailedProbe<Config extends ServerConfig> extends ProbedServer {
  readonly config: Config
  readonly failure: ProbeFailure
}

interface Diagnosis {
  readonly message: string
  readonly remedy: string
}

/** Recognises one cause of a failure; undefined if the failure has another cause. */
type RecogniseCause<Config extends ServerConfig> = (failed: FailedProbe<Config>) => Diagnosis | undefined

/** Returns the diagnosis from the first cause that matches. */
export function diagnose(server: ProbedServer, failure: ProbeFailure): Diagnosis {
  const { config } = server
  const diagnoses =
    config.transport === 'stdio'
      ? stdioCauses.map((recognise) => recognise({ ...server, config, failure }))
      : httpCauses.map((recognise) => recognise({ ...server, config, failure }))
  return diagnoses.find((known) => known !== undefined) as Diagnosis
}

/** Programs that download a package before they run it, each with a command that downloads the package beforehand. */
const runners: Readonly<Record<string, (wanted: string) => string>> = {
  npx: (wanted) => `npm exec --yes --package=${shellQuote(wanted)} -- true`,
  bunx: (wanted) => `bun add --global ${shellQuote(wanted)}`,
  uvx: (wanted) => `uv tool install ${shellQuote(wanted)}`,
  pipx: (wanted) => `pipx install ${shellQuote(wanted)}`,
  docker: (wanted) => `docker pull ${shellQuote(wanted)}`,
  podman: (wanted) => `podman pull ${shellQuote(wanted)}`,
}

/** The package that a command downloads; undefined if it downloads none. */
function download({ command, args }: StdioServer) {
  const runner = basename(command).replace(/\.cmd$/, '')
  const fetch = runners[runner]
  const words = args.filter((word) => word !== 'run' && !word.startsWith('-'))
  // Container commands have many options, so take the first word that looks like an image.
  const wanted = /docker|podman/.test(runner) ? words.find((word) => /[/:]/.test(word)) : words[0]
  return fetch && wanted !== undefined ? { runner, wanted, fetch: fetch(wanted) } : undefined
}

const unknown =
  /\bE404\b|404 Not Found|not in this registry|No solution found|was not found in the package registry|manifest unknown|No matching distribution/i
const offline =
  /ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|network (?:is unreachable|request)|dns error|error sending request|Failed to fetch|no such host/i

const untrustedOutput =
  /SELF_SIGNED_CERT|UNABLE_TO_(?:GET|VERIFY)\w+|CERTIFICATE_VERIFY_FAILED|invalid peer certificate|x509:/i

const downloadFailed: RecogniseCause<StdioServer> = ({ name, result, failure, withinMs, config }) => {
  const known = download(config)
  if (!known) return
  const { runner, wanted, fetch } = known
  const wrote = (pattern: RegExp) => result.stderr.some((line) => pattern.test(line))
  if (wrote(unknown)) {
    const look = runner === 'npx' ? commandLine(['npm', 'view', wanted, 'version']) : fetch
    return { message: `${runner} cannot find ${wanted}`, remedy: `${look}   # then correct mcpServers.${name}.args` }
  }
  // A proxy is probably inspecting TLS. Servers inherit the variables that name the proxy's certificate.
  if (wrote(untrustedOutput)) {
    const variable = /^(?:npx|bunx)$/.test(runner) ? 'NODE_EXTRA_CA_CERTS' : 'SSL_CERT_FILE'
    const message = `${runner} cannot fetch ${wanted}: the registry's certificate is not trusted here`
    return { message, remedy: `export ${variable}=/path/to/ca.pem` }
  }
  if (wrote(offline)) {
    return { message: `${runner} cannot fetch ${wanted}: the network is unreachable`, remedy: fetch }
  }
  if (!failure.timedOut) return
  const message = `no response within ${withinMs / 1000} s (--timeout); ${runner} may still be downloading ${wanted}`
  return { message, remedy: fetch }
}

const folderMissing: RecogniseCause<StdioServer> = ({ failure, config: { cwd } }) => {
  if (failure.code !== 'ENOENT' || cwd === undefined || statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) return
  return { message: `its working directory ${cwd} does not exist`, remedy: `mkdir -p ${shellQuote(cwd)}` }
}

const installations: Readonly<Record<string, string>> = {
  npx: 'install Node.js with npm: https://nodejs.org/en/download',
  npm: 'install Node.js with npm: https://nodejs.org/en/download',
  uvx: 'curl -LsSf https://astral.sh/uv/install.sh | sh',
  uv: 'curl -LsSf https://astral.sh/uv/install.sh | sh',
  bunx: 'curl -fsSL https://bun.sh/install | bash',
  docker: 'install Docker: https://docs.docker.com/get-docker/',
  python: 'use python3 instead, or install Python',
}

const commandMissing: RecogniseCause<StdioServer> = ({ name, failure, config }) => {
  if (failure.code !== 'ENOENT') return
  const { command } = config
  const file = findCommand(config)
  if (file !== undefined) {
    const message = `${file} exists, but the interpreter in its first line does not`
    return { message, remedy: `head -1 ${shellQuote(file)}   # install it, or correct mcpServers.${name}.command` }
  }
  const remedy =
    installations[command] ?? `command -v ${shellQuote(command)}   # set mcpServers.${name}.command to the full path`
  return { message: `the command ${command} was not found`, remedy }
}

const findCommand = ({ command, cwd, env }: StdioServer, isWanted = isExecutable): string | undefined =>
  findProgram(command, { cwd, env: { ...process.env, ...env }, isWanted })

const notExecutable: RecogniseCause<StdioServer> = ({ name, failure, config }) => {
  if (failure.code !== 'EACCES') return
  const { command, cwd = '.' } = config
  const file = findCommand(config, isExistingFile)
  if (file !== undefined && !isExecutable(file)) {
    return { message: `the command ${command} is not executable`, remedy: `chmod +x ${shellQuote(file)}` }
  }
  // A folder, or a file on a file system where nothing can be executed.
  const look = `ls -ld ${shellQuote(file ?? resolve(cwd, command))}   # then correct mcpServers.${name}.command`
  return { message: `the command ${command} cannot be executed: permission denied`, remedy: look }
}

const wants =
  /missing|required|requires|not set|unset|not defined|undefined|not provided|must (?:be )?(?:set|provide)|please (?:set|provide)|KeyError/i
const variable = /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g
const noVariable = /^(?:ERR|MODULE|UND|NODE_MODULES)_|_NOT_FOUND$/

const variableMissing: RecogniseCause<StdioServer> = ({ name, result: { stderr }, config, env }) => {
  const named = stderr.filter((line) => wants.test(line)).flatMap((line) => line.match(variable) ?? [])
  const missing = named.find((one) => !noVariable.test(one) && !config.env[one])
  if (missing === undefined) return
  const here =
    env[missing] === undefined ? '' : ', which is set here, but servers get only the variables in their configuration'
  return {
    message: `it needs the environment variable ${missing}${here}`,
    remedy: `mcpServers.${name}.env.${missing}: \${${missing}}`,
  }
}

const moduleMissing: RecogniseCause<StdioServer> = ({ result: { stderr }, config }) => {
  const output = stderr.join('\n')
  const [, node] = /Cannot find (?:module|package) '([^']+)'/.exec(output) ?? []
  if (node !== undefined) {
    const isFile = node.startsWith('/') || node.startsWith('.')
    if (isFile && node.includes('/node_modules/')) {
      return { message: `the file ${node} of an installed package does not exist`, remedy: byHand(config) }
    }
    const message = isFile ? `the file ${node} does not exist` : `the package ${node} is not installed`
    const where = config.cwd === undefined ? '' : `cd ${shellQuote(config.cwd)} && `
    return {
      message,
      remedy: isFile ? `ls -l ${shellQuote(node)}   # then correct its args` : `${where}npm install ${node}`,
    }
  }
  const [, python] = /No module named '?([\w.]+)/.exec(output) ?? []
  if (python === undefined) return undefined
  // A part of a module is missing if the package is installed in another version, and it has no package of that name.
  return python.includes('.')
    ? { message: `the Python module ${python} does not exist in the installed version`, remedy: byHand(config) }
    : { message: `the Python module ${python} is not installed`, remedy: `pip install ${python}` }
}

const dockerWithoutInput: RecogniseCause<StdioServer> = ({ name, config: { command, args } }) => {
  const runs = /(?:^|\/)(?:docker|podman)$/.test(command) && args.includes('run')
  if (!runs || args.some((word) => word === '--interactive' || /^-[a-z]*i[a-z]*$/.test(word))) return
  return {
    message: `${command} run without -i closes the server's input`,
    remedy: `mcpServers.${name}.args: [run, -i, …]`,
  }
}

const otherOutput: RecogniseCause<StdioServer> = ({ result: { stdout }, config }) => {
  const [first] = stdout
  if (first === undefined) return
  const message = `it writes lines to its standard output that are not MCP messages ("${first}"): it is not a stdio server, or it is running in another mode`
  return { message, remedy: byHand(config) }
}

const silentProcess: RecogniseCause<StdioServer> = ({ failure, withinMs, config }) => {
  if (!failure.timedOut) return
  return { message: `it started, but did not respond within ${withinMs / 1000} s (--timeout)`, remedy: byHand(config) }
}

/** Matches every failure. The server's last output is removed from the message, because it is shown separately. */
const anyStdioFailure: RecogniseCause<StdioServer> = ({ name, failure, config }) => ({
  message: failure.message
    .replace(`${name} ended`, 'it ended')
    .replace(/( It last wrote: ".*")?\.?( Run its command manually to see the cause\.)?$/, '')
    .replace(/\.$/, ''),
  remedy: byHand(config),
})

function byHand({ command, args, cwd }: StdioServer): string {
  const line = commandLine([command, ...args])
  return cwd === undefined ? line : `cd ${shellQuote(cwd)} && ${line}`
}

/** Most specific causes first; the last one matches every failure. */
const stdioCauses: readonly RecogniseCause<StdioServer>[] = [
  folderMissing,
  commandMissing,
  notExecutable,
  variableMissing,
  downloadFailed,
  moduleMissing,
  dockerWithoutInput,
  otherOutput,
  silentProcess,
  anyStdioFailure,
]

/** A URL without query and fragment, which often contain secrets. */
function bare(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}

const curl = (config: RemoteServer, options = '-sv'): string => `curl ${options} ${shellQuote(bare(config.url))}`

const network: Readonly<Record<string, string>> = {
  ENOTFOUND: 'unknown host name',
  EAI_AGAIN: 'the host name cannot be looked up at the moment',
  ECONNREFUSED: 'nothing is listening there',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'the host does not respond',
  UND_ERR_CONNECT_TIMEOUT: 'the host does not respond',
}

const unreachable: RecogniseCause<RemoteServer> = ({ name, failure: { code = '' }, config }) => {
  const why = network[code]
  if (why === undefined) return
  const { host } = new URL(config.url)
  return {
    message: `${host}: ${why} (${code})`,
    remedy: `${curl(config)}   # then start it, or correct mcpServers.${name}.url`,
  }
}

const proxy: RecogniseCause<RemoteServer> = ({ failure: { code, message }, config }) =>
  code === 'PROXY'
    ? { message: message.replace(/\.$/, ''), remedy: `${curl(config)}   # uses the same proxy` }
    : undefined

const untrustedCode = /^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_\w+|CERT_UNTRUSTED)$/

const encryption: RecogniseCause<RemoteServer> = ({ name, failure: { code = '' }, config }) => {
  const { host } = new URL(config.url)
  if (untrustedCode.test(code)) {
    const message = `${host} presents a certificate that is not trusted here (${code})`
    return { message, remedy: 'export NODE_EXTRA_CA_CERTS=/path/to/ca.pem' }
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    const remedy = `date; ${curl(config)} 2>&1 | grep -i 'expire date'   # renew it, or correct the clock`
    return { message: `the certificate for ${host} has expired or is not valid yet (${code})`, remedy }
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const remedy = `mcpServers.${name}.url: https://the-name-in-the-certificate/…`
    return { message: `${host} presents a certificate for a different host name`, remedy }
  }
  if (config.url.startsWith('https:') && (code === 'EPROTO' || code.startsWith('ERR_SSL_'))) {
    const remedy = `mcpServers.${name}.url: ${bare(config.url).replace(/^https/, 'http')}`
    return { message: `${host} does not speak TLS (${code})`, remedy }
  }
  return undefined
}

/** The response is not HTTP, or the connection was closed without a response. Often, http and https were confused. */
const brokenResponse: RecogniseCause<RemoteServer> = ({ name, failure: { code = '' }, config }) => {
  if (!(code === 'UND_ERR_SOCKET' || code.startsWith('HPE_') || code === 'ECONNRESET')) return
  const { host, protocol } = new URL(config.url)
  const [meant, other] = protocol === 'http:' ? ['it may require TLS', 'https:'] : ['it may not speak TLS', 'http:']
  const message = `${host} closes the connection or does not speak HTTP (${code}); ${meant}`
  return { message, remedy: `mcpServers.${name}.url: ${bare(config.url).replace(protocol, other)}` }
}

const needsSignIn: RecogniseCause<RemoteServer> = (failed) => {
  const { signIn } = failed.failure
  return signIn === undefined ? undefined : { message: signIn, remedy: oauthRemedy(failed) }
}

const oauthRemedy = ({ name, command, config: { auth } }: FailedProbe<RemoteServer>): string =>
  auth?.type === 'oauth' && auth.grant === 'client_credentials'
    ? `check mcpServers.${name}.auth`
    : `${command} auth ${name}`

const unauthorized: RecogniseCause<RemoteServer> = (failed) => {
  const { name, command, config } = failed
  const { status, offersOAuth } = failed.failure
  if (status !== 401 && status !== 403) return
  const setting = `mcpServers.${name}.auth`
  if (config.auth?.type === 'oauth') {
    const message = `it rejects the token from the last sign-in (HTTP ${status}); the token's scopes may be insufficient`
    return { message, remedy: oauthRemedy(failed) }
  }
  const shown =
    config.auth !== undefined || Object.keys(config.headers).some((header) => /auth|key|token/i.test(header))
  if (!shown && offersOAuth) {
    const message = `it requires a sign-in (HTTP ${status}), and OAuth is not configured`
    return { message, remedy: `${setting}: { type: oauth }, then ${command} auth ${name}` }
  }
  if (!shown) {
    const message = `it requires a credential (HTTP ${status}), and none is configured`
    return { message, remedy: `${setting}: { type: bearer, token: "\${TOKEN}" }` }
  }
  const message = `it rejects our credential (HTTP ${status}): wrong, expired, or without permission`
  return { message, remedy: `get a new one, and check ${setting} and mcpServers.${name}.headers` }
}

const redirect: RecogniseCause<RemoteServer> = ({ failure: { status = 0, message }, config }) => {
  if (status < 300 || status >= 400) return
  const [, to = 'another address'] = /redirects to (\S+?),/.exec(message) ?? []
  const remedy = `${curl(config, "-sL -o /dev/null -w '%{url_effective}\\n'")}   # use this address as url: redirects are not followed`
  return { message: `it redirects to ${to} (HTTP ${status})`, remedy }
}

const wrongAddress: RecogniseCause<RemoteServer> = ({ name, failure: { status = 0, message }, config }) => {
  const refused = [400, 404, 405, 406, 410, 415].includes(status)
  if (!refused && !/instead of (?:a message|events)|no message/.test(message)) return
  const { origin, pathname } = new URL(config.url)
  const why = refused ? `HTTP ${status}` : 'the response is not an MCP message'
  const others = ['/mcp', '/sse'].filter((path) => path !== pathname).map((path) => origin + path)
  return {
    message: `there is no MCP server at ${bare(config.url)} (${why})`,
    remedy: `mcpServers.${name}.url: ${others[0]}   # or ${others[1] ?? 'see its documentation'}`,
  }
}

const slowResponse: RecogniseCause<RemoteServer> = ({ failure, withinMs, config }) => {
  if (!failure.timedOut) return
  return { message: `it did not answer within ${withinMs / 1000} s (--timeout)`, remedy: curl(config) }
}

const anyHttpFailure: RecogniseCause<RemoteServer> = ({ failure, config }) => ({
  message: failure.message.replace(/\.$/, ''),
  remedy: curl(config),
})

/** Most specific causes first; the last one matches every failure. */
const httpCauses: readonly RecogniseCause<RemoteServer>[] = [
  proxy,
  unreachable,
  encryption,
  brokenResponse,
  needsSignIn,
  unauthorized,
  redirect,
  wrongAddress,
  slowResponse,
  anyHttpFailure,
]
