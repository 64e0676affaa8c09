import type { Offers } from '../../core/access.ts'
import { type Capabilities, declaresExtension, skillsExtension } from '../../core/call.ts'
import { asRecord } from '../../lib/is-record.ts'
import { servedExtensions } from '../../wire/defined-members.ts'

export interface ServerOffers {
  readonly name: string
  readonly instructions: string
  readonly capabilities: Capabilities
}

/** Maximum length of instructions, for one server and for all together, because they use the model's context. */
export const maxAdvice = 2_000
const maxAdviceOfAll = 8_000
/** For clients that show the model little of it, because they search for tools themselves. */
const maxShortAdvice = 1_200
/** How much of that may name the servers whose instructions are left out. */
const maxNotice = 500

export function joinOffers(servers: readonly ServerOffers[], { isShort = false, hasSkills = false } = {}): Offers {
  const extensions = servedExtensions.filter((name) =>
    name === skillsExtension ? hasSkills : servers.some(({ capabilities }) => declaresExtension(capabilities, name)),
  )
  const capabilities = {
    ...(servers.some(runTasks) && { tasks: servedTasks }),
    ...(extensions.length > 0 && {
      extensions: Object.fromEntries(extensions.map((name) => [name, extensionSettings[name] ?? {}])),
    }),
  }
  return { capabilities, instructions: joinInstructions(servers, isShort ? maxShortAdvice : maxAdviceOfAll) }
}

const extensionSettings: Readonly<Record<string, object>> = { [skillsExtension]: { directoryRead: true } }

/** Task capabilities for session-based clients. Listing is omitted: a server would list all its callers' tasks. */
const servedTasks = { cancel: {}, requests: { tools: { call: {} } } }

const runTasks = ({ capabilities }: ServerOffers): boolean =>
  asRecord(asRecord(asRecord(capabilities.tasks).requests).tools).call !== undefined

/** Joins the instructions. Leaves out those that do not fit, as a whole, because half a sentence may mislead. */
function joinInstructions(servers: readonly ServerOffers[], max: number): string {
  const sections = servers
    .filter(({ instructions }) => instructions !== '')
    .map(({ name, instructions }) => ({
      name,
      text: `## ${name}\n${belowOurs(instructions.slice(0, maxAdvice)).toWellFormed()}`,
    }))
  const all = sections.map(({ text }) => text).join(sectionBreak)
  if (all.length <= max) return all
  const parts: string[] = []
  const leftOut: string[] = []
  let room = max - maxNotice
  for (const { name, text } of sections) {
    const length = sectionBreak.length + text.length
    if (length > room) leftOut.push(name)
    else {
      room -= length
      parts.push(text)
    }
  }
  return [noticeOf(leftOut), ...parts].join(sectionBreak)
}

const sectionBreak = '\n\n'

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
