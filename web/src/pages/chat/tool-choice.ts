import { pluralize } from '../../format/number.ts'

/**
 * The tools that the model may use: patterns such as `server.*` and `server.tool`; undefined for all of the agent's
 * tools. The gateway enforces the choice, and it can only narrow what the agent may use.
 */
export type ToolChoice = readonly string[] | undefined

const allOf = (server: string): string => `${server}.*`
const nameOf = (server: string, tool: string): string => `${server}.${tool}`

const belongsTo = (pattern: string, server: string): boolean => pattern.startsWith(`${server}.`)

/** Whether all, some or none of a server's tools are chosen. */
export function serverState(choice: ToolChoice, server: string): 'all' | 'some' | 'none' {
  if (choice === undefined || choice.includes(allOf(server))) return 'all'
  return choice.some((pattern) => belongsTo(pattern, server)) ? 'some' : 'none'
}

export const isToolChosen = (choice: ToolChoice, server: string, tool: string): boolean =>
  serverState(choice, server) === 'all' || choice?.includes(nameOf(server, tool)) === true

/** Chooses all tools of a server, or none if all are chosen. `servers` are all servers there are. */
export function toggleServer(choice: ToolChoice, server: string, servers: readonly string[]): ToolChoice {
  const others = (choice ?? servers.map(allOf)).filter((pattern) => !belongsTo(pattern, server))
  return simplified(serverState(choice, server) === 'all' ? others : [...others, allOf(server)], servers)
}

/** Chooses a tool, or removes it from the choice. `tools` are all tools of its server. */
export function toggleTool(
  choice: ToolChoice,
  { server, tool }: { readonly server: string; readonly tool: string },
  { servers, tools }: { readonly servers: readonly string[]; readonly tools: readonly string[] },
): ToolChoice {
  const others = (choice ?? servers.map(allOf)).filter((pattern) => !belongsTo(pattern, server))
  const chosen = tools.filter((one) => (one === tool) !== isToolChosen(choice, server, one))
  const patterns = chosen.length === tools.length ? [allOf(server)] : chosen.map((one) => nameOf(server, one))
  return simplified([...others, ...patterns], servers)
}

/** All servers mean all tools, also those of servers that are added later. */
const simplified = (choice: readonly string[], servers: readonly string[]): ToolChoice =>
  servers.every((server) => choice.includes(allOf(server))) ? undefined : choice

/** The choice in a few words. */
export function describeChoice(choice: ToolChoice): string {
  if (choice === undefined) return 'all'
  if (choice.length === 0) return 'none'
  const servers = choice.filter((pattern) => pattern.endsWith('.*')).length
  const tools = choice.length - servers
  return [servers > 0 && pluralize(servers, 'server'), tools > 0 && pluralize(tools, 'tool')].filter(Boolean).join(', ')
}
