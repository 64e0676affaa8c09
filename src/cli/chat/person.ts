import { type Caller, type Peer, quietPeer } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../json/json.ts'
import { isYes } from '../kit.ts'
import { oneLine } from '../table.ts'

/** Asks the person at the terminal. Rejects when the signal is aborted. */
export type AskPerson = (text: string, signal: AbortSignal) => Promise<string>

interface Elicitation {
  readonly message?: unknown
  readonly requestedSchema?: { readonly properties?: Readonly<Record<string, { readonly type?: unknown }>> }
}

/** The person at the terminal, who can answer only yes-or-no questions. Without `question`, approval is refused. */
export function personAt(caller: Caller, question: AskPerson | undefined): { caller: Caller; peer: Peer } {
  // Ask one question at a time, even if several tools are running in parallel.
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(work)
    turn = mine.catch(() => {})
    return mine
  }

  const elicit = async (question: AskPerson, { message, requestedSchema }: Elicitation, signal: AbortSignal) => {
    const fields = Object.entries(requestedSchema?.properties ?? {})
    const [name, schema] = fields[0] ?? []
    if (name === undefined || fields.length > 1 || schema?.type !== 'boolean') return { action: 'decline' }
    signal.throwIfAborted()
    const answer = await question(`${oneLine(String(message))} [y/N] `, signal)
    return isYes(answer) ? { action: 'accept', content: { [name]: true } } : { action: 'decline' }
  }

  return {
    caller: question ? { ...caller, capabilities: { ...caller.capabilities, elicitation: {} } } : caller,
    peer: quietPeer(async (method, params, signal) => {
      if (!question || method !== 'elicitation/create') throw cannotAnswer(method)
      return Json.of(await inTurn(() => elicit(question, params.value as Elicitation, signal)))
    }),
  }
}

const cannotAnswer = (method: string) =>
  new ToolwayError('INVALID_ARGUMENTS', `The command line cannot answer ${method} here; use a client that can.`)
