import type { Call, Interceptor } from '../core/call.ts'
import { canBeAsked } from '../core/capabilities.ts'
import type { Clock } from '../core/clock.ts'
import { deadline } from '../core/deadline.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import { Json } from '../core/json.ts'
import { personMs } from './timeout.ts'

/** The rule by which a tool needs a person's yes; undefined where it needs none. */
export type NeedsApproval = (entry: Entry) => string | undefined

/** Asks the person behind the caller before a tool runs that needs a yes. Whoever cannot be asked has not said it. */
export const approve = (needsApproval: NeedsApproval, clock: Clock): Interceptor => {
  return async (call, next) => {
    const rule = needsApproval(call.entry)
    if (rule !== undefined) await ask(call, rule, clock)
    return next(call)
  }
}

async function ask(call: Call, rule: string, clock: Clock): Promise<void> {
  const { entry, caller, peer, signal } = call
  const tool = `${entry.server}.${entry.name}`
  const refused = (why: string) =>
    new ToolwayError('DENIED_BY_POLICY', `${tool} needs a person's yes: ${why}`, {
      rule,
      server: entry.server,
      auditReason: 'not_approved',
    })
  if (!canBeAsked(caller.capabilities) || caller.capabilities.elicitation === undefined) {
    throw refused('your client cannot ask anybody (it has no elicitation). Use one that can, or another tool.')
  }
  using patience = deadline(clock, personMs, () => refused('nobody has answered in time.'), signal)
  const answer = await peer.ask('elicitation/create', Json.of(question(call, tool)), patience.signal)
  const { action, content } = answer.value as { action?: unknown; content?: { approve?: unknown } }
  if (action === 'accept' && content?.approve === true) return
  throw refused('the person has not agreed. Do not try again unless they ask you to.')
}

const question = ({ caller, input }: Call, tool: string) => ({
  mode: 'form',
  message: `The agent ${caller.agent} wants to call ${tool} with ${shown(input.arguments.value)}. Allow this once?`,
  requestedSchema: {
    type: 'object',
    properties: { approve: { type: 'boolean', title: `Allow ${tool}`, default: false } },
    required: ['approve'],
  },
})

const longest = 2_000

/** What a person decides about must be seen as it is: characters that hide or turn text around are spelt out. */
function shown(args: object): string {
  const text = JSON.stringify(args).replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  )
  return text.length > longest ? `${text.slice(0, longest)}… (${text.length} characters)` : text
}
