import * as z from 'zod'
import { plainName } from '../../config/validate.ts'
import type { Clock } from '../../core/clock.ts'
import { deadline } from '../../core/deadline.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { parseJson } from '../../json/parse-json.ts'
import { asRecord } from '../../lib/is-record.ts'
import { failureReason } from '../../lib/message-text.ts'
import { basicAuthOf } from '../../lib/url.ts'
import type { RegistryServerView } from '../contract.ts'

type RegistryChoice = RegistryServerView['choices'][number]

const registryTimeoutMs = 10_000
const maxRegistryBytes = 4 * 1024 * 1024
const maxServers = 30
const maxRegistryChoices = 8
const maxRegistryRequests = 4

/**
 * Searches an MCP registry (GET /v0/servers). What it returns is untrusted: only known package types become commands,
 * and nothing that Toolway would expand, such as a reference to a variable or a file. Redirects are not followed.
 */
export function createRegistryClient(url: () => string | undefined, clock: Clock) {
  let requests = 0
  return {
    async search(text: string, signal: AbortSignal): Promise<RegistryServerView[]> {
      const base = url()
      if (base === undefined) throw invalidArguments('No registry is configured (registry.url).')
      if (requests >= maxRegistryRequests)
        throw new ToolwayError('OVERLOADED', 'Other registry searches are running: try again in a moment.')
      requests++
      try {
        return readRegistryServers(await fetchList(registryAddress(base, text), clock, signal))
      } finally {
        requests--
      }
    },
  }
}

function registryAddress(base: string, text: string): URL {
  const address = new URL(base)
  const path = address.pathname.replace(/\/+$/, '')
  address.pathname = `${path}${/\/v\d+(?:\.\d+)*$/.test(path) ? '' : '/v0'}/servers`
  address.searchParams.set('search', text)
  address.searchParams.set('version', 'latest')
  address.searchParams.set('limit', String(maxServers))
  return address
}

async function fetchList(address: URL, clock: Clock, signal: AbortSignal) {
  const failure = (why: string) =>
    new ToolwayError('SERVER_UNAVAILABLE', `The registry ${address.origin} ${why} (registry.url).`)
  using limit = deadline(
    clock,
    registryTimeoutMs,
    () => failure(`did not answer within ${registryTimeoutMs / 1000} s`),
    signal,
  )
  const authorization = basicAuthOf(address)
  const headers = {
    accept: 'application/json',
    'user-agent': 'toolway',
    ...(authorization !== undefined && { authorization }),
  }
  const tooLarge = () => failure(`sent more than ${maxRegistryBytes / 1024 / 1024} MiB`)
  const { createHttpClient } = await import('../../egress/http-client.ts')
  await using client = createHttpClient(address, { connections: 1 })
  const path = address.pathname + address.search
  const request = { method: 'GET', path, headers, signal: limit.signal } as const
  const { status, text } = await client
    .fetchText(request, { maxBytes: maxRegistryBytes, tooLarge, accepts: (status) => status === 200 })
    .catch((thrown) => {
      signal.throwIfAborted()
      if (thrown instanceof ToolwayError) throw thrown
      throw failure(`cannot be reached (${failureReason(thrown)})`)
    })
  if (text === undefined) throw failure(`answered with HTTP ${status}`)
  const parsed = registryList.safeParse(parseJson(text))
  if (!parsed.success) throw failure('did not answer with a list of servers')
  return parsed.data.servers
}

const registryText = z.string().max(4_000)
const registryInput = z.object({
  type: registryText.optional(),
  name: registryText.optional(),
  value: registryText.optional(),
  default: registryText.optional(),
  description: registryText.optional(),
  valueHint: registryText.optional(),
  isRequired: z.boolean().optional(),
})
type RegistryInput = z.output<typeof registryInput>
const registryInputs = z.array(registryInput).max(100).default([])

/** A list in which an entry in another format becomes undefined. */
const listOf = <Schema extends z.ZodType>(schema: Schema) => z.array(schema.optional().catch(undefined))

const packageEntry = z.object({
  registryType: registryText,
  identifier: registryText,
  version: registryText.optional(),
  transport: z.object({ type: registryText }).optional(),
  runtimeArguments: registryInputs,
  packageArguments: registryInputs,
  environmentVariables: registryInputs,
})
const remoteEntry = z.object({ type: registryText, url: registryText, headers: registryInputs })
const serverEntry = z.object({
  name: registryText,
  description: registryText.default(''),
  version: registryText.default(''),
  packages: listOf(packageEntry).default([]),
  remotes: listOf(remoteEntry).default([]),
})
const listEntry = z.preprocess((entry) => asRecord(entry).server ?? entry, serverEntry)
const registryList = z.object({ servers: listOf(listEntry) })

/** The servers of a list. Entries in another format are left out. */
function readRegistryServers(list: z.output<typeof registryList>['servers']): RegistryServerView[] {
  const servers = new Map<string, RegistryServerView>()
  for (const entry of list) {
    if (!entry || servers.has(entry.name)) continue
    const { name, description, version, packages, remotes } = entry
    const short = name.replace(/^.*\//, '')
    const id = plainName(short) ?? (short === '' ? 'server' : short)
    const choices = [...remotes.map(remoteChoice), ...packages.map(packageChoice)]
      .filter((choice) => choice !== undefined)
      .filter(({ definition }) => !JSON.stringify(definition).includes('${'))
      .slice(0, maxRegistryChoices)
    servers.set(name, { name, description, version, choices: choices.map((choice) => ({ name: id, ...choice })) })
    if (servers.size === maxServers) break
  }
  return [...servers.values()]
}

type UnnamedChoice = Omit<RegistryChoice, 'name'>

function remoteChoice(data: z.output<typeof remoteEntry> | undefined): UnnamedChoice | undefined {
  if (!data || !/^https?:\/\//.test(data.url) || !URL.canParse(data.url)) return undefined
  const { values, missing } = readVariables(data.headers)
  const headers = Object.keys(values).length > 0 ? { headers: values } : {}
  const transport = data.type === 'sse' ? { transport: 'sse' } : {}
  const parts = [...data.url.matchAll(/\{(\w+)\}/g)].map(([part]) => `${part} in the URL`)
  return { label: data.url, definition: { url: data.url, ...transport, ...headers }, missing: [...parts, ...missing] }
}

/** Packages by the program that runs them. An identifier must not be read as an option of that program. */
const packageRunners: Readonly<Record<string, { readonly identifier: RegExp; words(pack: Package): string[] }>> = {
  npm: {
    identifier: /^(?:@[\w.-]+\/)?[A-Za-z0-9_][\w.-]*$/,
    words: ({ options, name }) => ['npx', '-y', ...options, name('@')],
  },
  pypi: {
    identifier: /^[A-Za-z0-9][\w.-]*$/,
    words: ({ options, name }) => ['uvx', ...options, name('@')],
  },
  oci: {
    identifier: /^[A-Za-z0-9][\w./:@-]*$/,
    words: ({ options, variables, name }) => [
      ...['docker', 'run', '-i', '--rm'],
      ...variables.flatMap((variable) => ['-e', variable]),
      ...[...options, name(':')],
    ],
  },
}

interface Package {
  readonly options: readonly string[]
  readonly variables: readonly string[]
  name(separator: string): string
}

function packageChoice(data: z.output<typeof packageEntry> | undefined): UnnamedChoice | undefined {
  if (!data || (data.transport && data.transport.type !== 'stdio')) return undefined
  const { registryType, identifier, version } = data
  const runner = Object.hasOwn(packageRunners, registryType) ? packageRunners[registryType] : undefined
  if (!runner?.identifier.test(identifier) || (version !== undefined && !/^[\w.+-]{1,100}$/.test(version)))
    return undefined
  const env = readVariables(data.environmentVariables)
  const options = packageArguments(data.runtimeArguments)
  const own = packageArguments(data.packageArguments)
  const hasTag = /[:@][^/]*$/.test(identifier.slice(1))
  const [command, ...args] = runner.words({
    options: options.words,
    variables: Object.keys(env.values),
    name: (separator) => (version === undefined || hasTag ? identifier : `${identifier}${separator}${version}`),
  })
  return {
    label: [registryType, identifier, version].filter((part) => part !== undefined).join(' '),
    definition: {
      command,
      args: [...args, ...own.words],
      ...(Object.keys(env.values).length > 0 && { env: env.values }),
    },
    missing: [...options.missing, ...own.missing, ...env.missing],
  }
}

const describeInput = (name: string, { description }: RegistryInput): string =>
  description === undefined ? name : `${name}: ${description.slice(0, 200)}`

/** Environment variables or headers that are required or have a value. */
function readVariables(list: readonly RegistryInput[]) {
  const values: Record<string, string> = {}
  const missing: string[] = []
  for (const one of list) {
    const value = one.value ?? one.default
    if (one.name === undefined || !/^[\w-]+$/.test(one.name) || (value === undefined && !one.isRequired)) continue
    values[one.name] = value ?? ''
    if (value === undefined || /\{\w+\}/.test(value)) missing.push(describeInput(one.name, one))
  }
  return { values, missing }
}

/** Arguments that are required or have a value. */
function packageArguments(list: readonly RegistryInput[]) {
  const found: string[] = []
  const missing: string[] = []
  for (const one of list) {
    const value = one.value ?? one.default
    const name = one.type === 'named' ? one.name : undefined
    if (value === undefined && !one.isRequired) continue
    if (name !== undefined) found.push(name)
    const hint = `<${one.valueHint ?? one.name ?? 'value'}>`
    if (value !== undefined || name === undefined) found.push(value ?? hint)
    if (value === undefined && name === undefined) missing.push(describeInput(hint, one))
  }
  return { words: found, missing }
}
