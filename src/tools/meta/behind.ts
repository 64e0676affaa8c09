import type { ServerSummary } from '../../core/source-status.ts'
import { oneLine } from './one-line.ts'

const longest = 600

/**
 * What is behind the gateway, in one sentence for a description: agents ignore a search tool that does not say
 * what it could find. Details give way to names, and names to a count, before it gets too long.
 */
export function behindSentence(servers: readonly ServerSummary[]): string {
  const open = servers.filter(({ status }) => status.health !== 'disabled')
  if (open.length === 0) return ''
  const tools = open.reduce((sum, server) => sum + server.tools, 0)
  const opening = ` Behind it now: ${count(tools, 'tool')} on ${count(open.length, 'server')}: `
  const detailed = opening + open.map(withDescription).join('; ') + '.'
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

const count = (number: number, word: string) => `${number} ${word}${number === 1 ? '' : 's'}`

/** A server that has not been asked yet has no number to tell. */
const withCount = ({ name, tools }: ServerSummary) => (tools === 0 ? name : `${name} (${tools})`)

function withDescription(server: ServerSummary): string {
  const description = oneLine(server.status.description, 80).replace(/\.$/, '')
  return description === '' ? withCount(server) : `${withCount(server)}: ${description}`
}
