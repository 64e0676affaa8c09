import { isMap, type ParsedNode, type YAMLMap } from 'yaml'
import { FileProblem } from './file-problem.ts'
import {
  documentOf,
  type Entry,
  endOf,
  endOfEntry,
  eolOf,
  inBraces,
  memberOf,
  type NewServer,
  saysExactly,
  serversBlock,
} from './yaml-servers.ts'

/** The same configuration with another server under its name; everything else stays as it is written, to the byte. */
export const replaceServer = (text: string, server: NewServer): string => changed(text, server.name, server)

/** The same configuration without one of its servers; everything else stays as it is written, to the byte. */
export const removeServer = (text: string, name: string): string => changed(text, name)

function changed(text: string, name: string, server?: NewServer): string {
  const document = documentOf(text)
  const section = isMap(document.contents) ? memberOf(document.contents, 'mcpServers') : undefined
  const entry = isMap(section?.value) ? memberOf(section.value, name) : undefined
  if (!section || !isMap(section.value) || !entry) throw new FileProblem(`it has no server ${name}`)
  const map: YAMLMap = section.value
  const after = map.flow ? withinBraces(text, map, entry, server) : withinLines(text, section, map, entry, server)
  const { [name]: _, ...others } = document.toJS().mcpServers
  if (saysExactly(after, document, server ? { ...others, [name]: server.definition } : others)) return after
  throw new FileProblem('it is written in a way that cannot be edited safely', 'Change it by hand.')
}

function withinBraces(text: string, { items }: YAMLMap, entry: Entry, server: NewServer | undefined): string {
  const index = items.indexOf(entry)
  const [before, next] = [items[index - 1], items[index + 1]] as (Entry | undefined)[]
  const [start, end] = [entry.key.range[0], endOf(entry)]
  if (server) return text.slice(0, start) + inBraces(server) + text.slice(end)
  if (next) return text.slice(0, start) + text.slice(next.key.range[0])
  return text.slice(0, before ? endOf(before) : start) + text.slice(end)
}

/** What we say ourselves above a server goes with it; what somebody else says there may be about more than that one. */
const ownComment = /(?<=^|\n)[ \t]*# (?:from|disabled until there is) [^\n]*\n$/

function withinLines(text: string, section: Entry, map: YAMLMap, entry: Entry, server: NewServer | undefined): string {
  const lineStart = text.lastIndexOf('\n', entry.key.range[0] - 1) + 1
  const indent = text.slice(lineStart, entry.key.range[0])
  const head = text.slice(0, lineStart).replace(ownComment, '')
  const tail = text.slice(endOfEntry(text, entry, indent.length))
  if (server) return head + serversBlock([server], indent).replaceAll('\n', eolOf(text)) + tail
  if (map.items.length > 1) return head + withoutDoubledGap(head, tail)
  // A section with nothing below it would be one that says nothing.
  const colon = text.indexOf(':', (section.key as ParsedNode).range[1]) + 1
  return `${head.slice(0, colon)} {}${head.slice(colon)}${tail}`
}

/** Of the blank lines on both sides of what went, one is enough. */
const withoutDoubledGap = (head: string, tail: string): string =>
  /\n[ \t]*\r?\n$/.test(head) ? tail.replace(/^[ \t]*\r?\n/, '') : tail
