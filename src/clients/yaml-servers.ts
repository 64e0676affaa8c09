import { isDeepStrictEqual } from 'node:util'
import {
  Document,
  isMap,
  isScalar,
  isSeq,
  type Pair,
  type ParsedNode,
  parse,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml'
import type { ServerDefinition } from '../config/import/read-servers.ts'
import { FileProblem } from './file.ts'

export interface NewServer {
  readonly name: string
  readonly definition: ServerDefinition
  /** A comment to write above the entry. It says where the server was imported from. */
  readonly comment?: string
}

const unit = '  '

/** Formats servers for the `mcpServers` section, with each line indented by `indent`. */
export function serversBlock(servers: readonly NewServer[], indent = unit): string {
  return servers.map((server) => entryLines(server).replace(/^(?=.)/gm, indent)).join('')
}

function entryLines({ name, definition, comment }: NewServer): string {
  const document = new Document({ [name]: definition })
  visit(document, {
    Seq(_, list) {
      // Write short lists on one line, which is easier to read.
      list.flow = list.items.every(isScalar) && JSON.stringify(list.toJSON()).length <= 90
    },
    Scalar(_, scalar) {
      if (typeof scalar.value === 'string' && /[\0-\x1f]/.test(scalar.value)) scalar.type = 'QUOTE_DOUBLE'
    },
  })
  const text = document.toString({ lineWidth: 0, flowCollectionPadding: false })
  const exact = isDeepStrictEqual(parse(text), JSON.parse(JSON.stringify({ [name]: definition })))
  // Fall back to JSON, which is valid YAML, if the text does not parse back to the same definition.
  const lines = exact ? text : `${JSON.stringify(name)}: ${JSON.stringify(definition)}\n`
  return `${comment === undefined ? '' : `# ${comment.replaceAll('\n', ' ')}\n`}${lines}`
}

/** Adds servers and preserves all existing text byte for byte. */
export function addServers(text: string, servers: readonly NewServer[]): string {
  if (servers.length === 0) return text
  const document = documentOf(text)
  const changed = inserted(text, document.contents, servers, eolOf(text))
  const before: ServerDefinition = document.toJS()?.mcpServers ?? {}
  const wanted = { ...before, ...Object.fromEntries(servers.map((one) => [one.name, one.definition])) }
  if (saysExactly(changed, document, wanted)) return changed
  throw new FileProblem('it cannot be edited safely because of its formatting', 'Add the servers by hand.')
}

export function documentOf(text: string): Document.Parsed {
  const document = parseDocument(text)
  const [fault] = document.errors
  if (fault) throw new FileProblem(`it is not valid YAML: ${fault.message.split('\n', 1)[0]}`)
  return document
}

/** Checks that the edited text parses to exactly the intended configuration. */
function saysExactly(changed: string, before: Document, mcpServers: ServerDefinition): boolean {
  try {
    const wanted = { ...before.toJS(), mcpServers }
    return isDeepStrictEqual(documentOf(changed).toJS(), JSON.parse(JSON.stringify(wanted)))
  } catch {
    return false
  }
}

const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n')

function inserted(text: string, root: ParsedNode | null, servers: readonly NewServer[], eol: string): string {
  const lines = (indent: string) => serversBlock(servers, indent).replaceAll('\n', eol)
  const atEnd = () =>
    `${text}${text === '' || text.endsWith('\n') ? '' : eol}${text.trim() === '' ? '' : eol}mcpServers:${eol}${lines(unit)}`
  if (root === null || (isScalar(root) && root.value === null)) return atEnd()
  if (!isMap(root) || root.flow)
    throw new FileProblem('its sections are written in flow style ({})', 'Add the servers by hand.')
  const section = memberOf(root, 'mcpServers')
  if (!section) return atEnd()
  const { value } = section
  const [start, end] = value?.range ?? [section.key.range[1] + 1, section.key.range[1] + 1]
  if (isMap(value) && value.flow && value.items.length > 0) return intoBraces(text, value, servers)
  if (isMap(value) && !value.flow) {
    const first = value.items[0]?.key as ParsedNode
    const indent = text.slice(text.lastIndexOf('\n', first.range[0] - 1) + 1, first.range[0])
    return splice(text, endOfEntry(text, value.items.at(-1) as YamlEntry, indent.length), lines(indent), eol)
  }
  if (isSeq(value) || (isScalar(value) && value.value !== null)) {
    throw new FileProblem('its mcpServers is not a section', 'Add the servers by hand.')
  }
  // The section is empty, `null` or `{}`: replace its value.
  const line = text.indexOf('\n', end)
  const rest = text.slice(end, line < 0 ? text.length : line + 1)
  const before = `${text.slice(0, start).trimEnd()}${rest.trim() === '' ? '' : ` ${rest.trim()}`}`
  return `${before}${eol}${lines(unit)}${line < 0 ? '' : text.slice(line + 1)}`
}

function intoBraces(text: string, map: YAMLMap, servers: readonly NewServer[]): string {
  const at = endOf(map.items.at(-1) as YamlEntry)
  return text.slice(0, at) + servers.map((server) => `, ${inBraces(server)}`).join('') + text.slice(at)
}

const inBraces = ({ name, definition }: NewServer): string => `${JSON.stringify(name)}: ${JSON.stringify(definition)}`

type YamlEntry = Pair<ParsedNode, ParsedNode | null>

const memberOf = ({ items }: YAMLMap, name: string): YamlEntry | undefined =>
  items.find(({ key }) => isScalar(key) && key.value === name) as YamlEntry | undefined

const endOf = ({ key, value }: YamlEntry): number => value?.range[1] ?? key.range[1]

/** The offset after the entry's last line and the comments below it that are indented deeper than its key. */
function endOfEntry(text: string, entry: YamlEntry, indent: number): number {
  const end = endOf(entry)
  const lineAfter = (offset: number) => {
    const found = text.indexOf('\n', offset)
    return found < 0 ? text.length : found + 1
  }
  let at = text[end - 1] === '\n' ? end : lineAfter(end)
  for (;;) {
    const comment = /^([ \t]*)#/.exec(text.slice(at, lineAfter(at)))
    if (!comment || (comment[1] as string).length <= indent) return at
    at = lineAfter(at)
  }
}

const splice = (text: string, at: number, block: string, eol: string): string =>
  `${text.slice(0, at)}${at > 0 && text[at - 1] !== '\n' ? eol : ''}${block}${text.slice(at)}`

/** Replaces one entry and preserves all other text byte for byte. */
export const replaceServer = (text: string, server: NewServer): string => changed(text, server.name, server)

/** Removes one entry and preserves all other text byte for byte. */
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
  throw new FileProblem('it cannot be edited safely because of its formatting', 'Change it by hand.')
}

function withinBraces(text: string, { items }: YAMLMap, entry: YamlEntry, server: NewServer | undefined): string {
  const index = items.indexOf(entry)
  const [before, next] = [items[index - 1], items[index + 1]] as (YamlEntry | undefined)[]
  const [start, end] = [entry.key.range[0], endOf(entry)]
  if (server) return text.slice(0, start) + inBraces(server) + text.slice(end)
  if (next) return text.slice(0, start) + text.slice(next.key.range[0])
  return text.slice(0, before ? endOf(before) : start) + text.slice(end)
}

/**
 * Matches the comment that an import wrote above a server. The comment is removed together with the server. Other
 * comments stay, because they may also be about other servers.
 */
const ownComment = /(?<=^|\n)[ \t]*# (?:from|disabled until there is) [^\n]*\n$/

function withinLines(
  text: string,
  section: YamlEntry,
  map: YAMLMap,
  entry: YamlEntry,
  server: NewServer | undefined,
): string {
  const lineStart = text.lastIndexOf('\n', entry.key.range[0] - 1) + 1
  const indent = text.slice(lineStart, entry.key.range[0])
  const head = text.slice(0, lineStart).replace(ownComment, '')
  const tail = text.slice(endOfEntry(text, entry, indent.length))
  if (server) return head + serversBlock([server], indent).replaceAll('\n', eolOf(text)) + tail
  if (map.items.length > 1) return head + withoutDoubledGap(head, tail)
  // A section without entries would be parsed as null, so write `{}`.
  const colon = text.indexOf(':', (section.key as ParsedNode).range[1]) + 1
  return `${head.slice(0, colon)} {}${head.slice(colon)}${tail}`
}

/** Avoids two blank lines in a row where an entry was removed. */
const withoutDoubledGap = (head: string, tail: string): string =>
  /\n[ \t]*\r?\n$/.test(head) ? tail.replace(/^[ \t]*\r?\n/, '') : tail
