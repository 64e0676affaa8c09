import { type Call, canBeAsked, type Interceptor, onceFree } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { deadline } from '../core/deadline.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import { durationText } from '../lib/duration.ts'
import { speltOut } from '../lib/hidden-characters.ts'
import { step } from './observe.ts'
import { personMs } from './timeout.ts'

/** The rule that requires a person's approval; undefined if none does. */
export type NeedsApproval = (entry: Entry) => string | undefined

/** Asks a person before running a tool that needs approval. Refuses the call if there is no way to ask. */
export const approve = (needsApproval: NeedsApproval, clock: Clock): Interceptor =>
  onceFree((call) => {
    const rule = needsApproval(call.entry) ?? call.approval
    return rule === undefined ? undefined : step(call.trail, 'approve', ask(call, rule, clock))
  })

async function ask(call: Call, rule: string, clock: Clock): Promise<void> {
  const { entry, caller, peer, signal } = call
  const tool = `${entry.server}.${shownName(entry.name)}`
  const refused = (why: string) =>
    new ToolwayError('DENIED_BY_POLICY', `${tool} needs a person's approval: ${why}`, {
      rule,
      server: entry.server,
      auditReason: 'not_approved',
    })
  if (!canBeAsked(caller.capabilities) || caller.capabilities.elicitation === undefined) {
    const problem = 'your client cannot ask for it, because it does not support elicitation'
    throw refused(`${problem}. Use a client that does, or another tool.`)
  }
  const args = shown(call.input.arguments.exact)
  if (args === undefined) {
    throw refused('its arguments are too long to show to a person. Use shorter arguments, or another tool.')
  }
  const unanswered = () => refused(`there was no answer within ${durationText(personMs)} (a fixed limit).`)
  using patience = deadline(clock, personMs, unanswered, signal)
  const answer = await peer.ask('elicitation/create', Json.of(question(call, tool, args)), patience.signal)
  const { action, content } = answer.value as { action?: unknown; content?: { approve?: unknown } }
  if (action === 'accept' && content?.approve === true) return
  throw refused('the person declined. Do not try again unless they ask you to.')
}

const question = ({ caller }: Call, tool: string, args: string) => ({
  mode: 'form',
  message: `The agent ${caller.agent} wants to call ${tool} with ${args}. Allow this once?`,
  requestedSchema: {
    type: 'object',
    properties: { approve: { type: 'boolean', title: `Allow ${tool}`, default: false } },
    required: ['approve'],
  },
})

/** Maximum length for each name and each value, so that a long one cannot push later ones out of sight. */
const maxValue = 200
const maxName = 100
/** Maximum length of all arguments together. Longer ones are refused: a person would approve them unread. */
const maxInAll = 4_000

/** All arguments by name, each value shortened separately; undefined if the text is too long for a person to read. */
function shown(args: object): string | undefined {
  const parts: string[] = []
  let length = 0
  for (const [name, value] of Object.entries(args)) {
    const part = `${quoted(name, maxName)}:${shownValue(value)}`
    length += part.length + 1
    if (length > maxInAll) return undefined
    parts.push(part)
  }
  return `{${parts.join(',')}}`
}

/** One value as text. Invisible characters are escaped, because the person must see what they approve. */
function shownValue(value: unknown): string {
  if (typeof value === 'string') return quoted(value, maxValue)
  return shortened(JSON.stringify(value), maxValue, speltOut)
}

/** The tool's name, quoted unless it is plain: a server chooses it, and it must not look like the end of the question. */
const shownName = (name: string): string => (/^[\w./:-]{1,100}$/.test(name) ? name : quoted(name, maxName))

/** Quotes and shortens text. The note about omitted text stays outside the quotes, so that a caller cannot forge it. */
const quoted = (text: string, maxLength: number): string =>
  shortened(text, maxLength, (part) => speltOut(JSON.stringify(part)))

function shortened(text: string, maxLength: number, show: (part: string) => string): string {
  if (text.length <= maxLength) return show(text)
  return `${show(text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, ''))}… (${text.length} characters)`
}
