import type { Definition } from '../../config/import/read-servers.ts'
import { plainName } from '../../config/issues.ts'
import { serverName } from '../../config/schema/mcp-servers.ts'
import { UsageError } from '../usage.ts'

/** What the command line says about a server. */
export interface DefinitionOptions {
  readonly env?: readonly string[]
  readonly header?: readonly string[]
  readonly transport?: 'http' | 'sse' | 'stdio'
}

/** Refuses what the configuration would not take for a name. */
export function refuseName(name: string): void {
  const { error } = serverName.safeParse(name)
  if (!error) return
  const near = plainName(name)
  throw new UsageError(
    `A server cannot be called ${JSON.stringify(name)}${near === undefined ? '.' : `; did you mean ${near}?`}`,
    `Take ${error.issues[0]?.message ?? 'another name'}.`,
  )
}

const isAddress = (word: string): boolean => /^[a-z][a-z\d+.-]*:\/\//i.test(word)

/** The server that somebody describes: at an address, or a program with its words. */
export function definitionOf([first = '', ...rest]: readonly string[], options: DefinitionOptions): Definition {
  const { transport } = options
  const given = transport && { transport }
  if (isAddress(first)) {
    if (rest.length > 0) throw new UsageError('A URL stands alone.', 'Headers are given with --header "Name: value".')
    if (options.env) throw new UsageError('--env is for a command.', 'What a URL wants to be sent is a --header.')
    if (transport === 'stdio') throw new UsageError('--transport stdio needs a command, not a URL.')
    return { url: first, ...given, headers: pairs(options.header, header) }
  }
  if (options.header) throw new UsageError('--header is for a URL.', 'What a command needs is given with --env.')
  if (transport !== undefined && transport !== 'stdio') {
    throw new UsageError(`--transport ${transport} needs a URL, which begins with https:// or http://.`)
  }
  return { command: first, ...given, args: rest, env: pairs(options.env, variable) }
}

type Pair = readonly [string, string]

/** What is given with an option may be a secret, so no complaint repeats it. */
const pairs = (given: readonly string[] = [], of: (text: string) => Pair): Record<string, string> =>
  Object.fromEntries(given.map(of))

function variable(text: string): Pair {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new UsageError('--env is written as KEY=VALUE.')
  return [name, value]
}

function header(text: string): Pair {
  const [, name, value] = /^\s*([^:\s]+)\s*:(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) {
    throw new UsageError('--header is written as "Name: value".', 'Quote it, so that the shell keeps it in one piece.')
  }
  return [name, value.trim()]
}
