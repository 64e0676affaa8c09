import { pluralize, shorten } from '../lib/message-text.ts'
import type { ServerSummary } from './source-status.ts'

export function shortFirstLine(text: string | undefined, longest = 160): string {
  const line = (text ?? '')
    .trimStart()
    .split(/[\r\n]/, 1)[0]!
    .trim()
  return shorten(line, longest)
}

const longest = 600

/**
 * A sentence that lists the available servers: agents ignore a search tool that does not say what it can find. To stay
 * short, it drops descriptions first, then names.
 */
export function serversSentence(servers: readonly ServerSummary[]): string {
  const open = servers.filter(({ status }) => status.health !== 'disabled')
  if (open.length === 0) return ''
  const tools = open.reduce((sum, server) => sum + server.tools, 0)
  const opening = ` Currently available: ${pluralize(tools, 'tool')} on ${pluralize(open.length, 'server')}: `
  const detailed = opening + open.map(serverWithDescription).join('; ') + '.'
  if (detailed.length <= longest) return detailed
  let sentence = opening
  for (const [index, server] of open.entries()) {
    const rest = `and ${open.length - index} more`
    const next = `${withCount(server)}${index === open.length - 1 ? '' : ', '}`
    if (sentence.length + next.length + rest.length + 1 > longest) return `${sentence}${rest}.`
    sentence += next
  }
  return `${sentence}.`
}

/** A server's name with the number of its tools. Omits the number if the tools are not known yet. */
const withCount = ({ name, tools }: ServerSummary) => (tools === 0 ? name : `${name} (${tools})`)

function serverWithDescription(server: ServerSummary): string {
  const description = shortFirstLine(server.status.description, 80).replace(/\.$/, '')
  return description === '' ? withCount(server) : `${withCount(server)}: ${description}`
}
