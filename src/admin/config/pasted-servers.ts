import { join } from 'node:path'
import { parse as parseJson } from 'jsonc-parser'
import { adaptServer, type FoundServer } from '../../clients/import-plan.ts'
import { readServersFrom } from '../../config/import/read-servers.ts'
import type { ConfigSource } from '../../config/locate.ts'
import { problemText } from '../../config/problems.ts'
import { serverName } from '../../config/schema/mcp-servers.ts'
import { plainName } from '../../config/validate.ts'
import { invalidArguments } from '../../core/errors.ts'
import { homeOf } from '../../core/home.ts'
import { isRandom } from '../../core/secret-name.ts'
import { isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { ConfigEdit } from '../contract.ts'
import { secretTexts } from './find-secrets.ts'

/**
 * Reads servers from a text that somebody has pasted: a command line, a URL, or the JSON, TOML or YAML of any MCP client.
 * `into` is the configuration file that they are added to.
 */
export async function readPasted(
  { input, name }: NonNullable<ConfigEdit['add']>,
  { env, cwd }: Omit<ConfigSource, 'paths'>,
  into: string,
): Promise<readonly FoundServer[]> {
  const text = stripMarkdown(input)
  if (text === '') throw invalidArguments('Enter a command, a URL, or the JSON of an MCP client.')
  const source = pastedFile(text, name, cwd)
  const { servers, problems } = await readServersFrom(source, homeOf(env))
  const [fault] = [...problems, ...servers.flatMap((server) => server.problems)]
  // Problems may quote the text, which may contain secrets; these messages never do.
  if (fault) throw invalidArguments(`${problemText(fault)}.`)
  if (servers.length === 0) throw invalidArguments('No server was found in this text.')
  if (name !== undefined && servers.length > 1) {
    throw invalidArguments('A name can be given only if the text contains one server.')
  }
  const origin = { path: join(cwd, 'toolway'), scope: 'user' as const }
  return servers.map((server) => {
    // A person may write `${file:…}` here, but a pasted command must not run.
    const found = adaptServer({ ...server, plain: ['exec'] }, origin, into)
    return { ...found, name: requireName(name ?? found.name) }
  })
}

function requireName(name: string): string {
  const { error } = serverName.safeParse(name)
  if (!error) return name
  throw invalidArguments(`Invalid server name ${quote(name)}: use ${error.issues[0]?.message}.`)
}

/** The text without the Markdown around it and without comments before it. */
const stripMarkdown = (text: string): string =>
  text
    .trim()
    .replace(/^```[^\n]*\n|\r?\n[ \t]*```$/g, '')
    .replace(/^`([^`]+)`$/, '$1')
    .replace(/^(?:\s+|(?:\/\/|#)[^\n]*|\/\*.*?\*\/)+/s, '')

function pastedFile(text: string, name: string | undefined, cwd: string): { path: string; text: string } {
  const file = (extension: string, content: string) => ({ path: join(cwd, `pasted.${extension}`), text: content })
  if (/^\[[^\]\n]*\bmcp_servers\b/m.test(text)) return file('toml', text)
  if (/^[{"]/.test(text) && /[:{]/.test(text) && !isQuotedCommand(text)) {
    // Documentation often shows an entry without the braces around it.
    const whole = text.startsWith('"') ? `{${text.replace(/,\s*$/, '')}}` : text
    return file('json', wrapEntries(whole, name))
  }
  if (/^[\w"'-]+:(?:\s|$)/m.test(text) && !/^\w+:\/\//.test(text) && text.includes('\n')) {
    return file('yaml', text)
  }
  return file('json', JSON.stringify({ mcpServers: commandOrUrl(text, name) }))
}

const isQuotedCommand = (text: string): boolean => /^"[^"]*"\s+[^\s:]/.test(text)

/** Wraps a bare entry, or entries without their section, in `mcpServers`. */
function wrapEntries(text: string, name: string | undefined): string {
  const value: unknown = parseJson(text, [], { allowTrailingComma: true })
  if (!isRecord(value)) return text
  if (isEntry(value)) return JSON.stringify({ mcpServers: { [name ?? suggestName(value)]: value } })
  const parts = Object.values(value)
  if (parts.length > 0 && parts.every((part) => isRecord(part) && isEntry(part))) {
    return JSON.stringify({ mcpServers: value })
  }
  return text
}

const isEntry = (value: Readonly<Record<string, unknown>>): boolean =>
  typeof value.command === 'string' || ['url', 'serverUrl', 'httpUrl'].some((key) => typeof value[key] === 'string')

function commandOrUrl(text: string, name: string | undefined): Record<string, object> {
  if (/^[a-z][a-z\d+.-]*:\/\/\S+$/i.test(text)) return { [name ?? suggestName({ url: text })]: { url: text } }
  const words = splitCommandLine(text.replace(/\\\r?\n/g, ' ').replace(/^\$\s+/, ''))
  const start = words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word))
  const [command, ...args] = start < 0 ? [] : words.slice(start)
  if (command === undefined) throw invalidArguments('This command line contains no command.')
  const env = Object.fromEntries(
    words.slice(0, start).map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  )
  const entry = { command, ...(args.length > 0 && { args }), ...(Object.keys(env).length > 0 && { env }) }
  return { [name ?? suggestName(entry)]: entry }
}

/** Splits a command line like a shell, but without expanding anything. */
export function splitCommandLine(line: string): string[] {
  const words = line.match(/(?:[^\s"'\\]|\\.?|"(?:[^"\\]|\\.)*"|'[^']*')+|["']/gs) ?? []
  if (words.some((word) => /^["']$/.test(word))) throw invalidArguments('A quotation mark is not closed.')
  return words.map((word) =>
    word.replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/gs, (_, double, single, escaped) =>
      double === undefined ? (single ?? escaped) : double.replace(/\\(["\\$`])/g, '$1'),
    ),
  )
}

/** A name for a server that has none: from its package, program, image or host. */
function suggestName({ command, args, url, serverUrl, httpUrl }: Readonly<Record<string, unknown>>): string {
  const address = [url, serverUrl, httpUrl].find((one) => typeof one === 'string') as string | undefined
  if (address !== undefined) {
    const labels = URL.canParse(address) ? new URL(address).hostname.split('.') : []
    const own = labels.filter((label) => !/^(?:mcp|api|www|\d+)$/.test(label))
    return plainServerName(own.length > 1 ? (own.at(-2) ?? '') : (own[0] ?? ''))
  }
  const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => typeof word === 'string')
  const secrets = secretTexts({ args: words })
  const mayName = (word: string): boolean =>
    !/^-|=/.test(word) && !isRandom(packageStem(word)) && !secrets.some((secret) => word.includes(secret))
  const ordinary = wordsThatName(words).filter(
    (word) => mayName(word) && !/^(?:run|exec|dlx|tool|x|\/c)$/.test(word) && !/\s/.test(word),
  )
  const main = ordinary.find((word) => !runnerPrograms.test(word)) ?? words.slice(0, 1).find(mayName) ?? ''
  const stem = packageStem(main)
  return plainServerName(stem.replace(/^(?:mcp-server|server|mcp)[-_]|[-_](?:mcp-server|mcp|server)$/g, '') || stem)
}

const runnerPrograms =
  /(?:^|[/\\])(?:npx|bunx|uvx|uv|pnpm|yarn|npm|node|bun|deno|python3?|docker|podman|cmd|sh|bash)(?:\.\w+)?$/

const packageStem = (word: string): string =>
  word
    .replace(/(?<=.)@[^@/]*$/, '')
    .replace(/^.*[/\\]/, '')
    .replace(/\.\w+$/, '')
    .replace(/:.*$/, '')

/** The words that may name a server. Of `docker run`, only the image: options come before it, many with a value. */
function wordsThatName(words: readonly string[]): readonly string[] {
  const [command = '', ...rest] = words
  const start = rest.findIndex((word) => word === 'run' || word === 'exec')
  if (!/(?:^|[/\\])(?:docker|podman|nerdctl)(?:\.exe)?$/.test(command) || start < 0) return words
  let at = start + 1
  while (rest[at]?.startsWith('-')) at += takesNextWord(rest[at] as string) ? 2 : 1
  return rest.slice(at, at + 1)
}

/** Whether an option of `docker run` is followed by its value. Most are, so unknown ones are assumed to be. */
const takesNextWord = (option: string): boolean =>
  option.startsWith('--') ? !option.includes('=') && !dockerSwitches.test(option) : /^-[diPqt]*[^diPqt]$/.test(option)

const dockerSwitches =
  /^--(?:detach|disable-content-trust|init|interactive|no-healthcheck|oom-kill-disable|privileged|publish-all|quiet|read-only|replace|rm|sig-proxy|tty|use-api-socket)?$/

const plainServerName = (name: string): string => plainName(name) ?? (name === '' ? 'server' : name)
