import { basename } from 'node:path'
import type { Program, Recognise } from './cause.ts'
import { commandLine, quoted } from './words.ts'

/** Programs that fetch what they are to run, and how to have it fetched beforehand. */
const runners: Readonly<Record<string, (wanted: string) => string>> = {
  npx: (wanted) => `npm exec --yes --package=${quoted(wanted)} -- true`,
  bunx: (wanted) => `bun add --global ${quoted(wanted)}`,
  uvx: (wanted) => `uv tool install ${quoted(wanted)}`,
  pipx: (wanted) => `pipx install ${quoted(wanted)}`,
  docker: (wanted) => `docker pull ${quoted(wanted)}`,
  podman: (wanted) => `podman pull ${quoted(wanted)}`,
}

interface Fetched {
  readonly runner: string
  readonly wanted: string
  readonly fetch: string
}

/** What a command has to fetch, if it is one that fetches. */
function fetched({ command, args }: Program): Fetched | undefined {
  const runner = basename(command).replace(/\.cmd$/, '')
  const fetch = runners[runner]
  const words = args.filter((word) => word !== 'run' && !word.startsWith('-'))
  // Of a container's many options the image is the word that looks like one.
  const wanted = /docker|podman/.test(runner) ? words.find((word) => /[/:]/.test(word)) : words[0]
  return fetch && wanted !== undefined ? { runner, wanted, fetch: fetch(wanted) } : undefined
}

const unknown =
  /\bE404\b|404 Not Found|not in this registry|No solution found|was not found in the package registry|manifest unknown|No matching distribution/i
const offline =
  /ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|network (?:is unreachable|request)|dns error|error sending request|Failed to fetch|no such host/i

const packageUnknown: Recognise<Program> = ({ name, examination, config }) => {
  const known = fetched(config)
  if (!known || !examination.stderr.some((line) => unknown.test(line))) return
  const { runner, wanted } = known
  const look = runner === 'npx' ? commandLine(['npm', 'view', wanted, 'version']) : known.fetch
  return { message: `${runner} finds no ${wanted}`, remedy: `${look}   # then correct mcpServers.${name}.args` }
}

const untrusted =
  /SELF_SIGNED_CERT|UNABLE_TO_(?:GET|VERIFY)\w+|CERTIFICATE_VERIFY_FAILED|invalid peer certificate|x509:/i

/** Behind a proxy that looks inside TLS; the variables that name its certificate are handed on to servers. */
const packageUntrusted: Recognise<Program> = ({ examination, config }) => {
  const known = fetched(config)
  if (!known || !examination.stderr.some((line) => untrusted.test(line))) return
  const { runner, wanted } = known
  const variable = /^(?:npx|bunx)$/.test(runner) ? 'NODE_EXTRA_CA_CERTS' : 'SSL_CERT_FILE'
  const message = `${runner} cannot fetch ${wanted}: nobody here vouches for the certificate that it is shown`
  return { message, remedy: `export ${variable}=/path/to/ca.pem` }
}

const packageOffline: Recognise<Program> = ({ examination, config }) => {
  const known = fetched(config)
  if (!known || !examination.stderr.some((line) => offline.test(line))) return
  return { message: `${known.runner} cannot fetch ${known.wanted}: the network is not there`, remedy: known.fetch }
}

/** A first start may take minutes; the ones after it do not. */
const slowFetch: Recognise<Program> = ({ failure, withinMs, config }) => {
  const known = fetched(config)
  if (!known || !failure.timedOut) return
  const { runner, wanted, fetch } = known
  return {
    message: `no answer within ${withinMs / 1000} s (--timeout); ${runner} may still be fetching ${wanted}`,
    remedy: fetch,
  }
}

/** Why programs fail that have to be fetched first. */
export const packageCauses: readonly Recognise<Program>[] = [
  packageUnknown,
  packageUntrusted,
  packageOffline,
  slowFetch,
]
