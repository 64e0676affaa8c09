import { problemAt } from '../problems.ts'
import { configSchema } from '../schema.ts'
import { knownKeysAt } from '../schema-lookup.ts'
import { type BranchNode, branch, type ConfigTree, keyLocation, keyPath, leaf } from '../tree.ts'
import { inverted, mapText, type TranslationReport } from './shape.ts'

/** Server keys used by other clients, with their descriptions for the editor schema. */
export const serverAliases: Readonly<Record<string, string>> = {
  type: 'Alias of transport.',
  transportType: 'Alias of transport.',
  httpUrl: 'Alias of url, with transport http.',
  serverUrl: 'Alias of url.',
  enabled: 'The opposite of disabled.',
  includeTools: 'Alias of tools.include.',
  excludeTools: 'Alias of tools.exclude.',
  disabledTools: 'Alias of tools.exclude.',
  alwaysAllow: 'Ignored: the client decides which calls need approval.',
  autoApprove: 'Ignored: the client decides which calls need approval.',
  trust: 'Ignored: the client decides which calls need approval.',
}

/** Keys that are processed before the server is validated. */
export const serverExtras: Readonly<Record<string, string>> = {
  envFile: 'File with NAME=value lines that are added to env; keys in env win.',
}

export const transportAliases: Readonly<Record<string, string>> = {
  local: 'stdio',
  'streamable-http': 'http',
  streamableHttp: 'http',
  streamable_http: 'http',
  'http-stream': 'http',
}

const leftAside = ['alwaysAllow', 'autoApprove', 'trust']

/** Renames aliases to Toolway's keys. Source locations are kept. */
export function normaliseServer(server: BranchNode, name: string, report: TranslationReport): BranchNode {
  const members = new Map<string, ConfigTree>()
  const tools = new Map<string, ConfigTree>()
  const put = (key: string, value: ConfigTree, into = members) => {
    const known = into.get(key)
    const same = known?.kind === 'leaf' && value.kind === 'leaf' && known.value === value.value
    if (known && !same) report.problems.push(problemAt(keyLocation(value), `contradicts ${key}; keep one of them`))
    else into.set(key, value)
  }
  for (const [key, value] of server.members) {
    if (key === 'transport' || key === 'type' || key === 'transportType') {
      put(
        'transport',
        mapText(value, (text) => transportAliases[text] ?? text),
      )
    } else if (key === 'httpUrl' || key === 'serverUrl') put('url', value)
    else if (key === 'enabled') put('disabled', inverted(value))
    else if (key === 'includeTools') put('include', value, tools)
    else if (key === 'excludeTools' || key === 'disabledTools') put('exclude', value, tools)
    else if (leftAside.includes(key)) {
      report.warnings.push(
        `${keyPath(['mcpServers', name, key])} has no effect: the client decides which calls need approval; list tools under approve to have Toolway ask for approval`,
      )
    } else put(key, value)
  }
  const httpUrl = server.members.get('httpUrl')
  if (httpUrl && !members.has('transport')) members.set('transport', leaf(keyLocation(httpUrl), 'http'))
  if (tools.size > 0 && !members.has('tools')) members.set('tools', branch(server.at, tools))
  return branch(server.at, members)
}

/** All keys accepted in a server entry, including aliases. Other dialects accept all of these keys too. */
export const serverKeys: readonly string[] = [
  ...knownKeysAt(configSchema, ['mcpServers', '*']),
  ...Object.keys({ ...serverAliases, ...serverExtras }),
]
