import { shellQuote } from '../../lib/message-text.ts'
import type { FailedProbe, RecogniseCause, RemoteServer } from './finding.ts'

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

const untrusted = /^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_\w+|CERT_UNTRUSTED)$/

const encryption: RecogniseCause<RemoteServer> = ({ name, failure: { code = '' }, config }) => {
  const { host } = new URL(config.url)
  if (untrusted.test(code)) {
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

const slow: RecogniseCause<RemoteServer> = ({ failure, withinMs, config }) => {
  if (!failure.timedOut) return
  return { message: `it did not answer within ${withinMs / 1000} s (--timeout)`, remedy: curl(config) }
}

const anything: RecogniseCause<RemoteServer> = ({ failure, config }) => ({
  message: failure.message.replace(/\.$/, ''),
  remedy: curl(config),
})

/** Most specific causes first; the last one matches every failure. */
export const httpCauses: readonly RecogniseCause<RemoteServer>[] = [
  proxy,
  unreachable,
  encryption,
  brokenResponse,
  needsSignIn,
  unauthorized,
  redirect,
  wrongAddress,
  slow,
  anything,
]
