import type { Capabilities } from '../../core/call.ts'
import type { ServerFinding } from '../../core/source-status.ts'
import { Json } from '../../json/json.ts'
import { walk } from '../../json/json-text.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { quote, shorten } from '../../lib/message-text.ts'
import { metaKeys } from '../../wire/revisions.ts'
import { written } from '../listing/list-reader.ts'
import { maxAdvice } from '../listing/offers.ts'

/** What a server says about itself in the handshake. */
export interface ServerDescription {
  readonly serverInfo: Readonly<Record<string, unknown>>
  readonly capabilities: Capabilities
  readonly instructions?: string | undefined
  /** What was shortened or left out. */
  readonly findings?: readonly ServerFinding[] | undefined
}

/** Above this size, only members of at most `maxMember` bytes are parsed. */
const maxHandshake = 64 * 1024
const maxMember = 4 * 1024
const maxInstructions = 64 * 1024
/** The maximum length of the server's name, title and version. */
const maxInfoText = 1_024
/** How many members a finding names. */
const maxNamed = 10

/**
 * Reads the result of `initialize` or `server/discover`. Shortens long texts, and leaves out members that are large or of
 * the wrong type.
 */
export function readHandshakeResult(method: string, result: Buffer) {
  const leftOut: string[] = []
  const isSmall = result.length <= maxHandshake
  const body = isSmall ? Json.raw<Record<string, unknown>>(result).value : smallBody(result, leftOut)
  const capabilities = asRecord(body.capabilities)
  const serverInfo = withShortTexts(asRecord(body._meta)[metaKeys.serverInfo] ?? body.serverInfo, leftOut)
  const advice = typeof body.instructions === 'string' ? body.instructions : undefined
  const instructions = advice && advice.length > maxInstructions ? shorten(advice, maxInstructions) : advice
  const invalid = invalidMembers(body).map((name) => quote(name))
  const findings = [
    ...adviceFindings(method, advice),
    ...memberFindings(method, leftOut),
    ...invalidFindings(method, invalid, isRecord(body.capabilities)),
  ]
  const described: ServerDescription = {
    ...{ serverInfo, capabilities, instructions },
    ...(findings.length > 0 && { findings }),
  }
  return { body, described }
}

/** The body of a large result, without unknown members, and without large members of its members. */
function smallBody(result: Buffer, leftOut: string[]): Readonly<Record<string, unknown>> {
  const small = new Map<string, unknown>()
  walk(result, (name, start, end) => {
    if (!bodyMembers.has(name)) return true
    const value = result.subarray(start, end)
    const fits = value.length <= maxMember || name === 'instructions'
    small.set(name, fits ? Json.raw(value).value : smallMembers(name, value, leftOut))
    return true
  })
  return Object.fromEntries(small)
}

const bodyMembers: ReadonlySet<string> = new Set([
  ...['protocolVersion', 'supportedVersions', 'capabilities', 'serverInfo', 'instructions', '_meta'],
])

function smallMembers(outer: string, text: Buffer, leftOut: string[]): Readonly<Record<string, unknown>> {
  const small = new Map<string, unknown>()
  let room = maxHandshake
  walk(text, (name, start, end) => {
    const fits = end - start <= maxMember
    room -= name.length + Math.min(maxMember, end - start)
    if (room > 0 && fits) small.set(name, Json.raw(text.subarray(start, end)).value)
    // A capability whose details are left out is still offered.
    else if (room > 0 && outer === 'capabilities') small.set(name, {})
    if (room <= 0 || !fits) leftOut.push(quote(`${outer}.${name}`))
    return room > 0
  })
  return Object.fromEntries(small)
}

function withShortTexts(serverInfo: unknown, leftOut: string[]): Readonly<Record<string, unknown>> {
  if (!isRecord(serverInfo)) return {}
  const isLong = ([, value]: [string, unknown]) => typeof value === 'string' && value.length > maxInfoText
  const long = Object.entries(serverInfo).filter(isLong)
  if (long.length === 0) return serverInfo
  leftOut.push(...long.map(([name]) => quote(`serverInfo.${name}`)))
  const short = long.map(([name, value]) => [name, shorten(value as string, maxInfoText)])
  return { ...serverInfo, ...Object.fromEntries(short) }
}

/** The members of the wrong type. Many servers write a member that they do not have as null. */
function invalidMembers({
  capabilities,
  serverInfo,
  instructions,
  _meta,
}: Readonly<Record<string, unknown>>): string[] {
  const isValid = {
    capabilities: isRecord(capabilities),
    serverInfo: isRecord(asRecord(_meta)[metaKeys.serverInfo] ?? serverInfo ?? {}),
    instructions: typeof (instructions ?? '') === 'string',
  }
  return Object.entries(isValid).flatMap(([name, valid]) => (valid ? [] : [name]))
}

function invalidFindings(method: string, invalid: readonly string[], hasCapabilities: boolean): ServerFinding[] {
  if (invalid.length === 0) return []
  const consequence = hasCapabilities
    ? ''
    : ' Without "capabilities", none of its tools, resources and prompts are listed.'
  const message = `${method}: missing or invalid members are left out: ${named(invalid)}.${consequence}`
  return [{ kind: 'malformed-handshake', method, message, count: invalid.length }]
}

const named = (names: readonly string[]) => names.slice(0, maxNamed).join(', ') + (names.length > maxNamed ? ', …' : '')

function adviceFindings(method: string, advice = ''): ServerFinding[] {
  if (advice.length <= maxAdvice) return []
  const size = `${written(advice.length)} characters`
  const message = `${method}: the instructions have ${size}; clients get the first ${written(maxAdvice)} (a fixed limit).`
  return [{ kind: 'long-text', method, message, count: 1, limit: maxAdvice }]
}

function memberFindings(method: string, leftOut: readonly string[]): ServerFinding[] {
  if (leftOut.length === 0) return []
  const message = `${method}: members that are too large are shortened or left out: ${named(leftOut)}.`
  return [{ kind: 'large-handshake', method, message, count: leftOut.length, limit: maxMember }]
}
