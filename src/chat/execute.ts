import { randomUUID } from 'node:crypto'
import type { Served } from '../core/access.ts'
import type { ChatEvent, ChatMessage } from '../core/chat.ts'
import { waitFor } from '../core/deadline.ts'
import type { Entry } from '../core/entry.ts'
import { matches } from '../core/wildcard.ts'
import { oneLine } from './cut.ts'
import type { ReadCall } from './read-calls.ts'
import { failureText, resultText } from './result-text.ts'
import type { Turn } from './turn.ts'

/** What a call has come to. */
export interface Ran {
  readonly call: ReadCall['call']
  readonly text: string
  readonly isError: boolean
  /** What the model is told beside the result. */
  readonly hint?: string
}

/**
 * Makes calls side by side, each through the one pipeline, and tells of them as they happen; the results are in the
 * order of the calls. A call that fails, or that was wrong to begin with, has that for its result (S5).
 */
export async function* execute(turn: Turn, calls: readonly ReadCall[]): AsyncGenerator<ChatEvent, readonly Ran[]> {
  const { clock, signal, config } = turn
  const ran = new Map<ReadCall, Ran>()
  const ended: ChatEvent[] = []
  let running = 0
  let wake = (): void => {}

  const begin = async (call: ReadCall, served: Served): Promise<void> => {
    const start = clock.monotonic()
    const { text, isError } = await run(turn, call, served)
    ran.set(call, { call: call.call, text, isError })
    const durationMs = clock.monotonic() - start
    ended.push({ kind: 'result', call: call.call.id, isError, durationMs, text: oneLine(text) })
    wake()
  }

  async function* tellEnded(): AsyncGenerator<ChatEvent> {
    const { promise, resolve } = Promise.withResolvers<void>()
    wake = resolve
    if (ended.length === 0) await waitFor(promise, signal)
    for (const event of ended.splice(0)) {
      running--
      yield event
    }
  }

  for (const call of calls) {
    const served = call.problem === undefined ? call.tool?.served : undefined
    if (!served) {
      ran.set(call, { call: call.call, text: `Error: ${call.problem ?? 'This tool is not run here.'}`, isError: true })
      continue
    }
    while (running >= config.parallel) yield* tellEnded()
    const { name, entry } = served
    yield { kind: 'call', call: call.call.id, name, server: entry.server, arguments: call.arguments }
    running++
    void begin(call, served)
  }
  while (running > 0) yield* tellEnded()
  return calls.map((call) => ran.get(call) as Ran)
}

/** One call. Never rejects: whatever happens to it is for the model to read. */
async function run(turn: Turn, { json }: ReadCall, { entry }: Served): Promise<Omit<Ran, 'call'>> {
  const { access, request, signal, config, log } = turn
  const approval = approvalRule(config.approve, entry)
  try {
    const result = await access.handle({
      id: randomUUID(),
      parent: request.id,
      caller: request.caller,
      entry,
      input: { arguments: json, meta: {} },
      signal,
      peer: request.peer,
      ...(request.trace && { trace: request.trace }),
      ...(approval !== undefined && { approval }),
    })
    return { text: resultText(result, config.maxResult), isError: result.isError }
  } catch (thrown) {
    return { text: failureText(thrown, log, `${entry.server}.${entry.name}`, config.maxResult), isError: true }
  }
}

/** The rule by which the loop must not call a tool without a person's yes. */
function approvalRule(patterns: readonly string[], { server, name, traits }: Entry): string | undefined {
  const means = (pattern: string): boolean =>
    pattern === 'writes' ? !traits.readOnly : matches(pattern, `${server}.${name}`)
  const index = patterns.findIndex(means)
  return index < 0 ? undefined : `chat.approve[${index}]`
}

/** A round as part of the conversation: what the model said and called, and the results that there are. */
export const roundMessages = (
  content: string,
  calls: readonly ReadCall[],
  ran: readonly Ran[],
): readonly ChatMessage[] => [
  { role: 'assistant', content: content === '' ? null : content, tool_calls: calls.map(({ call }) => call) },
  ...ran.map(({ call, text, hint }): ChatMessage => {
    return { role: 'tool', tool_call_id: call.id, content: hint === undefined ? text : `${text}\n(${hint})` }
  }),
]
