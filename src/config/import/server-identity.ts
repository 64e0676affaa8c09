import { createHash } from 'node:crypto'
import { canonical } from '../../json/canonical-json.ts'
import { serverName } from '../schema/mcp-servers.ts'
import { type BranchNode, serverNodes, withMember } from '../tree.ts'
import { plainName } from '../validate.ts'
import type { TranslationReport } from './shape.ts'

/** Keys that are ignored when servers are compared. */
const besides = ['disabled', 'timeout', 'startTimeout', 'description', 'session']

/** Returns a string that is the same for all definitions of one server, regardless of key order. */
export function fingerprint(definition: Readonly<Record<string, unknown>>): string {
  const kept = Object.entries(definition).filter(([key, value]) => !besides.includes(key) && !isEmpty(value))
  return canonical(Object.fromEntries(kept))
}

/** Keys that say which server an entry starts or connects to. All other keys only say how Toolway treats it. */
const identifying = ['command', 'args', 'env', 'envFile', 'cwd', 'url', 'transport', 'headers', 'auth']

/** Like `fingerprint`, but compares only which server it is: restrictions and other settings do not make it another. */
export const identityOf = (definition: Readonly<Record<string, unknown>>): string =>
  fingerprint(Object.fromEntries(Object.entries(definition).filter(([key]) => identifying.includes(key))))

/** The settings of `definition`, such as `tools`, that `other`, an entry for the same server, does not have. */
export const settingsBeyond = (
  definition: Readonly<Record<string, unknown>>,
  other: Readonly<Record<string, unknown>>,
): string[] =>
  Object.entries(definition)
    .filter(([key, value]) => !identifying.includes(key) && !besides.includes(key) && !isEmpty(value))
    .filter(([key, value]) => other[key] === undefined || canonical(value) !== canonical(other[key]))
    .map(([key]) => key)

/** Whether a value counts as absent: an empty list, an empty section or the implied `stdio` transport. */
const isEmpty = (value: unknown): boolean =>
  value === 'stdio' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)

/** Matches paths relative to the working folder, such as `.`, `../x` and `server.py`. */
const relative = /^\.{1,2}([/\\]|$)|^(?![/\\~$-]|[A-Za-z]:[/\\]|[a-z]+:\/\/|@).*\.(?:[cm]?[jt]s|py|sh|rb|jar|exe)$/

/** Guesses from the command and its arguments whether the server depends on its working folder. */
export const dependsOnFolder = ({ command, args }: Readonly<Record<string, unknown>>): boolean =>
  [command, ...(Array.isArray(args) ? args : [])].some((word) => typeof word === 'string' && relative.test(word))

/** Packages and images (without versions) whose servers keep state in their process, so callers must not share them. */
const stateful: ReadonlySet<string> = new Set([
  // Browsers
  '@playwright/mcp',
  'mcp-server-playwright',
  '@executeautomation/playwright-mcp-server',
  'mcr.microsoft.com/playwright/mcp',
  'mcp/playwright',
  '@modelcontextprotocol/server-puppeteer',
  'puppeteer-mcp-server',
  'mcp/puppeteer',
  'chrome-devtools-mcp',
  '@browsermcp/mcp',
  '@browserbasehq/mcp',
  '@browserbasehq/mcp-server-browserbase',
  '@agent-infra/mcp-server-browser',
  'mcp-server-browser-use',
  'browser-use-mcp-server',
  '@angiejones/mcp-selenium',
  // Memory and reasoning
  '@modelcontextprotocol/server-memory',
  'mcp/memory',
  '@modelcontextprotocol/server-sequential-thinking',
  'mcp/sequentialthinking',
  // Shells and notebooks
  '@wonderwhy-er/desktop-commander',
  'jupyter-mcp-server',
])

/** Whether the command or an argument names a stateful server. */
export function keepsState({ command, args }: Readonly<Record<string, unknown>>): boolean {
  const words = [command, ...(Array.isArray(args) ? args : [])]
  return words.some((word) => typeof word === 'string' && namesOf(word).some((name) => stateful.has(name)))
}

export const statefulNote = (name: string): string =>
  `mcpServers.${name} keeps state in its process, so each caller gets its own process (session: caller)`

/** Possible package names in a word such as `--package=@x/y@1.2`, `mcp/y:latest` or `/node_modules/@x/y/cli.js`. */
function namesOf(word: string): string[] {
  const text = word.replaceAll('\\', '/').replace(/^--?[\w-]+=/, '')
  const installed = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(text)?.[1]
  const bare = text.replace(/(?<=.)(@|:|==)[^/@:=]+$/, '')
  const program = bare.slice(bare.lastIndexOf('/') + 1).replace(/\.(cmd|exe|js|mjs)$/, '')
  return [bare, program, ...(installed ? [installed] : [])]
}

/** Renames servers whose names are invalid in Toolway, with a note: some clients allow sentences or URLs as names. */
export function withPlainNames(tree: BranchNode, nameOf: NameOf, report: TranslationReport): BranchNode {
  const servers = tree.members.get('mcpServers')
  if (servers?.kind !== 'branch') return tree
  const renamed = [...servers.members].map(([name, server]) => {
    const other = nameOf(name)
    if (other !== name) report.notes.push(`the server ${name} was renamed to ${other}`)
    return [other, server] as const
  })
  return withMember(tree, 'mcpServers', { ...servers, members: new Map(renamed) })
}

/** The names of a document's servers, as written. */
export const namesIn = (tree: BranchNode): readonly string[] => [...serverNodes(tree).keys()]

type NameOf = (written: string) => string

/**
 * Returns a function that replaces invalid names by valid ones, for servers in one file or in several that are used
 * together. Servers with one name are merged, and rules and pins refer to a server by its name. So a name that could
 * be that of another server gets a hash, which depends on the invalid name only.
 */
export function validNames(written: Iterable<string>): NameOf {
  const all = new Set(written)
  const readableNames = Map.groupBy(all.difference(new Set([...all].filter(isValid))), readable)
  return (name) => {
    if (isValid(name)) return name
    const plain = readable(name)
    const isUnique = plain !== undefined && !all.has(plain) && (readableNames.get(plain)?.length ?? 0) < 2
    return isUnique ? plain : hashed(name, plain)
  }
}

const isValid = (name: string): boolean => serverName.safeParse(name).success

function hashed(name: string, plain = 'server'): string {
  // JSON is unambiguous for any characters, including lone surrogates.
  const hash = createHash('sha256').update(JSON.stringify(name)).digest('hex').slice(0, 8)
  return `${plain.slice(0, 55)}-${hash}`
}

/** The valid characters of an invalid name, if any. For a path, prefers the last segment, which is the most specific. */
function readable(name: string): string | undefined {
  const last = name.split('/').at(-1) ?? ''
  const plain = /^[A-Za-z]/.test(last) && last !== name && isValid(last) ? last : plainName(name)
  if (plain !== undefined && isValid(plain)) return plain
  return isValid(`${name}-server`) ? `${name}-server` : undefined
}
