import type { Offers } from '../../core/access.ts'
import type { Capabilities } from '../../core/call.ts'
import { hiddenCharacters } from '../../lib/hidden-characters.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { depthExceeds } from '../../lib/json-text.ts'

export interface ServerOffers {
  readonly name: string
  readonly instructions: string
  readonly capabilities: Capabilities
}

/** Maximum length of instructions, for one server and for all together, because they use the model's context. */
export const maxAdvice = 2_000
const maxAdviceOfAll = 8_000
/** How much of that may name the servers whose instructions are left out. */
const maxNotice = 500

export function joinOffers(servers: readonly ServerOffers[]): Offers {
  const extensions = Object.assign({}, ...servers.map(({ capabilities }) => usableExtensions(capabilities).usable))
  const capabilities = {
    ...(servers.some(runTasks) && { tasks: servedTasks }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  }
  return { capabilities, instructions: joined(servers) }
}

const maxExtensions = 64
const maxExtensionName = 256
const maxExtension = 4 * 1024
/** Clients whose JSON parser allows 64 levels by default must still be able to read the handshake. */
const maxExtensionDepth = 56

/**
 * The extensions of a server that may become part of our handshake, and the names of the others. Clients reject the whole
 * handshake, and with it all servers, for one value that is not an object or that their JSON parser does not accept.
 */
export function usableExtensions({ extensions }: Capabilities) {
  const usable = new Map<string, unknown>()
  const leftOut: string[] = []
  for (const [name, settings] of Object.entries(asRecord(extensions)))
    if (usable.size < maxExtensions && isUsableExtension(name, settings)) usable.set(name, settings)
    else leftOut.push(name)
  return { usable: Object.fromEntries(usable), leftOut }
}

function isUsableExtension(name: string, settings: unknown): boolean {
  if (name.length > maxExtensionName || hiddenCharacters(name).length > 0 || !isRecord(settings)) return false
  const text = JSON.stringify([name, settings])
  // JSON.stringify writes a lone surrogate as an escape, which only JavaScript's parser accepts.
  return text.length <= maxExtension && !loneSurrogate.test(text) && !depthExceeds(Buffer.from(text), maxExtensionDepth)
}

const loneSurrogate = /(?<!\\)(?:\\\\)*\\ud[89a-f]/

/** Task capabilities for session-based clients. Listing is omitted: a server would list all its callers' tasks. */
const servedTasks = { cancel: {}, requests: { tools: { call: {} } } }

const runTasks = ({ capabilities }: ServerOffers): boolean =>
  asRecord(asRecord(asRecord(capabilities.tasks).requests).tools).call !== undefined

/** Joins the instructions. Leaves out those that do not fit, as a whole, because half a sentence may mislead. */
function joined(servers: readonly ServerOffers[]): string {
  const sections = servers
    .filter(({ instructions }) => instructions !== '')
    .map(({ name, instructions }) => ({
      name,
      text: `## ${name}\n${belowOurs(instructions.slice(0, maxAdvice)).toWellFormed()}`,
    }))
  const all = sections.map(({ text }) => text).join(between)
  if (all.length <= maxAdviceOfAll) return all
  const parts: string[] = []
  const leftOut: string[] = []
  let room = maxAdviceOfAll - maxNotice
  for (const { name, text } of sections) {
    const length = between.length + text.length
    if (length > room) leftOut.push(name)
    else {
      room -= length
      parts.push(text)
    }
  }
  return [noticeOf(leftOut), ...parts].join(between)
}

const between = '\n\n'

/** Says whose instructions are left out. It comes first: after a section, it would seem to be written by that server. */
function noticeOf(names: readonly string[]): string {
  let named = names.length
  const written = () => {
    const others = named < names.length ? [`${names.length - named} others`] : []
    return `Left out for lack of space: the instructions of ${[...names.slice(0, named), ...others].join(', ')}.`
  }
  while (written().length > maxNotice) named--
  return written()
}

/** Lowers the headings in a server's instructions, so that a server cannot begin the section of another one. */
const belowOurs = (instructions: string): string => instructions.replaceAll(/^([^\S\n]*)(#{1,2})(?!#)/gm, '$1##$2')
