import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type ApprovalAnswer, type ApprovalNeed, clientMayAnswer, othersMayAnswer } from '../core/approval.ts'
import type { Call, CallCheck, Capabilities } from '../core/call.ts'
import type { Clock } from '../core/clock.ts'
import { deadline } from '../core/deadline.ts'
import { ToolwayError } from '../core/errors.ts'
import { everySecond, notifyWaitingFor } from '../core/waiting.ts'
import { Json } from '../json/json.ts'
import { speltOut } from '../lib/characters.ts'
import { durationText } from '../lib/duration.ts'
import { asRecord } from '../lib/is-record.ts'
import type { Approvals, NewApproval } from './approvals.ts'
import { waitStep } from './observe.ts'

export interface ApproveOptions {
  /** Whether a call needs a person's approval, under the current rules. */
  need(call: Call): ApprovalNeed | undefined
  /** Whether a principal's API key was revoked, or has expired. */
  isRevoked(principal: string): boolean
  readonly approvals: Approvals
  /** How long to wait for an answer. */
  readonly waitMs: number
  /** Removes known secrets from arguments, and nothing else: the person must see what runs. */
  redact(args: object): unknown
}

/**
 * Asks a person before running a tool that needs approval (V8): the user of the client, through elicitation, and
 * everybody else who may answer, through the admin API. The first answer counts. Refuses the call at once if nobody can
 * be asked. Runs before the call's timeout starts, so waiting does not count as part of the call.
 */
export const approve =
  (options: ApproveOptions, clock: Clock): CallCheck =>
  (call) => {
    const need = options.need(call)
    if (need === undefined) return undefined
    const granted = options.approvals.grantedTo(call, need)
    if (granted === undefined) return waitStep(call.trail, 'approve', askUnderCurrentRules(call, need, options, clock))
    if (call.trail) call.trail.approval = granted
    return undefined
  }

/** Asks again if the rules changed before the answer: others may have to give it now. */
async function askUnderCurrentRules(call: Call, need: ApprovalNeed, options: ApproveOptions, clock: Clock) {
  let current: ApprovalNeed | undefined = need
  while (current) {
    await ask(call, current, options, clock)
    if (options.isRevoked(call.caller.principal)) throw revoked(call, current)
    const after = options.need(call)
    if (isDeepStrictEqual(after, current)) return
    current = after
  }
}

async function ask(call: Call, need: ApprovalNeed, options: ApproveOptions, clock: Clock): Promise<void> {
  const { entry, signal } = call
  const { approvals, waitMs } = options
  const tool = `${entry.server}.${shownName(entry.name)}`
  const refused = (why: string) =>
    new ToolwayError('DENIED_BY_POLICY', `${tool} needs a person's approval: ${why}`, {
      rule: need.rule,
      server: entry.server,
      auditReason: 'not_approved',
    })
  const client = clientMayAnswer(need) && canFillForms(call.caller.capabilities)
  const others = approvals.accepting && othersMayAnswer(need)
  if (!client && !others) throw refused(nobody(need, approvals.accepting))
  const brief = client ? shown(call.input.arguments.exact) : undefined
  const full = others ? fullText(call, options) : undefined
  if (brief === undefined && full === undefined) {
    throw refused('its arguments are too long to show to a person. Use shorter arguments, or another tool.')
  }
  const unanswered = () => refused(`nobody answered within ${durationText(waitMs)} (approvals.wait).`)
  using patience = deadline(clock, waitMs, unanswered, signal)
  const over = new AbortController()
  const waiting = AbortSignal.any([patience.signal, over.signal])
  using _progress = progressOf(call, tool, clock)
  const asked: Promise<ApprovalAnswer>[] = []
  if (full !== undefined) asked.push(approvals.request(requestOf(call, need, full), waitMs, waiting))
  if (brief !== undefined) asked.push(elicit(call, question(call, tool, brief, full !== undefined), waiting))
  const answer = await firstOf(asked, patience.signal).finally(() => over.abort())
  if (call.trail) call.trail.approval = { decision: answer.decision, by: answer.by }
  if (answer.decision !== 'deny') return
  const { reason } = answer
  const said = reason === undefined ? '' : ` and said: ${quoted(reason, maxReason)}`
  throw refused(`a person declined${said}. Do not try again unless they ask you to.`)
}

const revoked = ({ entry }: Call, { rule }: ApprovalNeed) =>
  new ToolwayError(
    'DENIED_BY_POLICY',
    'Your API key was revoked, or has expired, while the call waited for approval.',
    {
      rule,
      server: entry.server,
      auditReason: 'revoked',
    },
  )

/** Whether a client can show forms. One that declares elicitation without naming a mode can. */
function canFillForms({ elicitation }: Capabilities): boolean {
  const { form, url } = asRecord(elicitation)
  return elicitation !== undefined && (form !== undefined || url === undefined)
}

/** Why nobody can be asked, and what to do about it. */
function nobody(need: ApprovalNeed, accepting: boolean): string {
  if (accepting) {
    return 'only the user of your client may give it, and your client does not support elicitation. Use a client that does, or another tool.'
  }
  const serving = 'a gateway that is running (toolway serve), or another tool'
  const nowhere = 'this process serves no dashboard'
  return clientMayAnswer(need)
    ? `nobody can be asked, because your client does not support elicitation and ${nowhere}. Use a client that supports it, ${serving}.`
    : `nobody can be asked, because ${nowhere}. Use ${serving}.`
}

/** The first answer. If one way of asking fails, the others go on; if all fail, rejects with the first failure. */
async function firstOf(asked: readonly Promise<ApprovalAnswer>[], signal: AbortSignal): Promise<ApprovalAnswer> {
  try {
    return await Promise.any(asked)
  } catch (thrown) {
    signal.throwIfAborted()
    throw thrown instanceof AggregateError ? thrown.errors[0] : thrown
  }
}

/** Asks the user of the client. Anything but a yes is a no. */
async function elicit({ peer }: Call, params: object, signal: AbortSignal): Promise<ApprovalAnswer> {
  const answer = await peer.ask('elicitation/create', Json.of(params), signal, 'toolway')
  const { action, content } = answer.value as { action?: unknown; content?: { approve?: unknown } }
  const isYes = action === 'accept' && content?.approve === true
  return { decision: isYes ? 'once' : 'deny', by: 'client' }
}

const requestOf = ({ id, caller, entry }: Call, need: ApprovalNeed, args: string): NewApproval => ({
  ...need,
  call: id,
  agent: caller.agent,
  principal: caller.principal,
  session: caller.session,
  server: entry.server,
  tool: entry.name,
  arguments: args,
})

/** Tells the client every second that the call is waiting, if it asked for progress. */
function progressOf({ input, peer }: Call, tool: string, clock: Clock): Disposable | undefined {
  if (input.meta.progressToken === undefined) return undefined
  const began = clock.monotonic()
  const what = `a person to approve ${tool}`
  return everySecond(clock, () => notifyWaitingFor(input.meta, peer, clock.monotonic() - began, what))
}

/** Maximum size of arguments that are shown in full. */
const maxFull = 64 * 1024
const maxReason = 1_000

/** The arguments in full, as indented JSON with hidden characters spelt out; undefined if they are too long. */
function fullText({ input }: Call, { redact }: ApproveOptions): string | undefined {
  if (input.arguments.bytes.length > maxFull) return undefined
  // JSON escapes line breaks in strings, so those that are left come from the indentation.
  const lines = JSON.stringify(redact(input.arguments.exact), undefined, 2).split('\n')
  return lines.map(speltOut).join('\n')
}

const elsewhere = 'The dashboard and `toolway approvals` show all of it. '

const question = ({ caller }: Call, tool: string, { text, shortened }: ShownArguments, inFull: boolean) => ({
  mode: 'form',
  message: `The agent ${caller.agent} wants to call ${tool} with ${text}. ${shortened && inFull ? elsewhere : ''}Allow this once?`,
  requestedSchema: {
    type: 'object',
    properties: { approve: { type: 'boolean', title: `Allow ${tool}`, default: false } },
    required: ['approve'],
  },
})

const maxName = 100
/** Maximum length of all arguments together. Longer ones are shortened, or refused: a person would approve them unread. */
const maxInAll = 8_000
/** Maximum lengths of each value and each name, from none to the tightest. The first that fits is used. */
const limits: readonly (readonly [number, number])[] = [
  [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  [2_000, maxName],
  [200, maxName],
]
/** Longer values come last, so that they cannot push others out of sight. */
const maxFirst = 200

interface ShownArguments {
  readonly text: string
  readonly shortened: boolean
}

/**
 * All arguments by name: in full if possible, otherwise with the beginning and end of each long one and a note on what is
 * left out. Undefined if even that is too long for a person to read.
 */
function shown(args: object): ShownArguments | undefined {
  const all = Object.entries(args).map(([name, value]) => ({ name, value, json: JSON.stringify(value) }))
  // Bound the work: even the shortest form of a longer list would not fit.
  if (all.length > maxInAll) return undefined
  const ordered = [
    ...all.filter(({ json }) => json.length <= maxFirst),
    ...all.filter(({ json }) => json.length > maxFirst),
  ]
  const total = ordered.reduce((sum, { name, json }) => sum + name.length + json.length, 0)
  for (const [maxValue, maxKey] of limits) {
    if (maxValue > total && total > maxInAll) continue
    const parts = ordered.map(({ name, value, json }) => {
      const text =
        typeof value === 'string'
          ? excerpt(value, maxValue)
          : json.length > maxValue
            ? excerpt(json, maxValue)
            : speltOut(json)
      return `${excerpt(name, maxKey)}:${text}`
    })
    const text = `{${parts.join(',')}}`
    if (text.length <= maxInAll) return { text, shortened: maxValue < total }
  }
  return undefined
}

/** Quotes text. Of a longer one, only the beginning and the end; the note stays outside the quotes, so nobody can forge it. */
function excerpt(text: string, maxLength: number): string {
  const quote = (part: string) => speltOut(JSON.stringify(part))
  if (text.length <= maxLength) return quote(text)
  const begin = text.slice(0, maxLength / 2).replace(/[\ud800-\udbff]$/, '')
  const end = text.slice(-maxLength / 2).replace(/^[\udc00-\udfff]/, '')
  const left = text.length - begin.length - end.length
  const digest = createHash('sha256').update(text).digest('hex')
  return `${quote(begin)}… (${left} of ${text.length} characters left out, SHA-256 of all: ${digest}) …${quote(end)}`
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
