import type { FunctionCall, Reasoning } from '../../core/chat.ts'
import { jsonValue, parseJson } from '../../json/parse-json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { asFunctionCalls, functionCallOf } from '../constrain/stage-schemas.ts'
import { newCallId } from '../conversation.ts'
import { repair } from '../repair/repair.ts'
import { splitUnopenedThinking, type TextPart } from '../stream/thinking.ts'
import type { Delta, EndReason, Usage } from './model.ts'
import type { RequestPlan } from './request-plan.ts'

export async function* deltasOf(objects: AsyncIterable<unknown>, plan: RequestPlan): AsyncGenerator<Delta> {
  const reader = new CompletionReader()
  const texts: string[] = []
  for await (const object of objects) {
    for (const piece of reader.take(object)) {
      // Calls written as text can be parsed only once the text is complete.
      if (plan.callsAsText && piece.kind === 'text') texts.push(piece.text)
      else yield piece
    }
  }
  const written = plan.callsAsText ? readCalls(texts.join(''), plan) : { text: '', calls: [] }
  if (written.text !== '') yield { kind: 'text', text: written.text }
  const { calls, reason, usage, reasoning } = reader.end()
  for (const call of [...calls.map((call) => restoreCall(call, plan)), ...written.calls]) yield { kind: 'call', call }
  yield {
    kind: 'end',
    reason: written.calls.length > 0 && !isCutOff(reason) ? 'calls' : reason,
    usage,
    reasoning,
    form: plan.callsAsText ? undefined : plan.constraint,
    restore: (value) => (plan.callsAsText ? value : plan.restore(value)),
  }
}

/**
 * Parses calls that a model wrote as text. If the JSON is ambiguous or ends within the calls, the text itself is the
 * answer.
 */
function readCalls(answer: string, plan: RequestPlan) {
  const found = repair(answer, { accepts: (value) => isRecord(value) && ('tool_calls' in value || 'content' in value) })
  if (!('value' in found) || found.ambiguous !== undefined || found.several) return { text: answer, calls: [] }
  if (!found.complete) {
    const { content, tool_calls: calls } = isRecord(found.value) ? found.value : {}
    return { text: typeof content === 'string' && calls === undefined ? content : answer, calls: [] }
  }
  const value = plan.restore(found.value)
  if (!isRecord(value)) return { text: answer, calls: [] }
  const written: readonly unknown[] = Array.isArray(value.tool_calls) ? value.tool_calls : []
  const named = written
    .filter(isRecord)
    .map(calledIn)
    .filter((called): called is { name: string; arguments: unknown } => typeof called.name === 'string')
  const text = typeof value.content === 'string' ? value.content : ''
  return { text, calls: asFunctionCalls({ tool_calls: named }, newCallId).tool_calls ?? [] }
}

/** What has a call's name and arguments: the call itself, or in OpenAI's format its member `function`. */
const calledIn = (call: Readonly<Record<string, unknown>>) => (isRecord(call.function) ? call.function : call)

/** Removes the nulls that strict mode added to a call's arguments. Invalid JSON is left unchanged. */
function restoreCall(call: FunctionCall, plan: RequestPlan): FunctionCall {
  const { name, arguments: text } = call.function
  try {
    const parsed: unknown = jsonValue(text)
    const before = JSON.stringify(parsed)
    const after = JSON.stringify(plan.restore(parsed, name))
    // Keep the original text if nothing changed: it may contain numbers that a double cannot hold.
    return after === before ? call : { ...call, function: { name, arguments: after } }
  } catch {
    return call
  }
}

const maxAnswerCalls = 128
/** Maximum number of chunks with details about the reasoning. */
const maxReasoningDetails = 65_536

interface PartialCall {
  id: string
  name: string
  arguments: string[]
  extra?: unknown
}

/** Collects the content of a `chat.completion` or its chunks; tolerates common deviations from the format. */
class CompletionReader {
  readonly #calls: PartialCall[] = []
  readonly #byPlace = new Map<unknown, PartialCall>()
  #reason: EndReason = 'unknown'
  #usage: Usage | undefined
  readonly #reasoning: { reasoning_content?: string; reasoning?: string } = {}
  readonly #details: unknown[] = []
  /** Whether the server sent a finish reason. */
  #finished = false

  take(object: unknown): readonly TextPart[] {
    if (!isRecord(object)) return []
    this.#usage = tokenUsage(object.usage) ?? this.#usage
    const choice = choiceOf(object)
    if (!choice) return []
    const pieces = this.#takeMessage(choice.delta ?? choice.message, !choice.delta)
    const finish = finishOf(choice)
    if (finish !== '') {
      const why = finishReasons[finish] ?? 'unknown'
      this.#finished = why !== interruptedReason
      if (this.#reason !== 'filtered') this.#reason = why
    }
    return pieces
  }

  end() {
    const seen = new Set<string>()
    const all = this.#calls.map(({ id, name, arguments: args, extra }) => {
      const own = id !== '' && !seen.has(id) ? id : newCallId()
      seen.add(own)
      const call = functionCallOf(own, name, args.join(''))
      return extra === undefined ? call : { ...call, extra_content: extra }
    })
    // Drop a call that was cut off before its arguments, or it would look complete. Partial arguments fail to parse.
    const isCut = this.#reason === 'length' || !this.#finished
    const isHalf = isCut && all.at(-1)?.function.arguments.trim() === ''
    const reason: EndReason = all.length > 0 && !isCutOff(this.#reason) ? 'calls' : this.#reason
    return { calls: isHalf ? all.slice(0, -1) : all, reason, usage: this.#usage, reasoning: this.#allReasoning() }
  }

  #takeMessage(message: unknown, isWhole: boolean): readonly TextPart[] {
    if (!isRecord(message)) return []
    const { tool_calls: calls, function_call: only } = message
    if (Array.isArray(calls) && calls.length > 0)
      for (const [place, call] of calls.entries()) this.#takeCall(call, place)
    else if (isRecord(only)) this.#takeCall(only, 0)
    this.#takeReasoning(message)
    const refusal = stringOrEmpty(message.refusal)
    if (refusal !== '') this.#reason = 'filtered'
    const content = contentText(message.content)
    const { thinking, text } = isWhole ? splitUnopenedThinking(content) : { thinking: '', text: content }
    const thought =
      stringOrEmpty(message.reasoning_content) || stringOrEmpty(message.reasoning) || thinkingOf(message.content)
    const pieces: TextPart[] = [
      { kind: 'thinking', text: thought + thinking },
      { kind: 'text', text: text + refusal },
    ]
    return pieces.filter(({ text }) => text !== '')
  }

  #takeCall(item: unknown, place: number): void {
    if (!isRecord(item)) return
    const called = calledIn(item)
    const id = stringOrEmpty(item.id)
    const hasIndex = typeof item.index === 'number'
    const key = hasIndex ? item.index : place
    let call = this.#byPlace.get(key)
    // Some servers give every call the same index, so a different id also means a different call.
    const hasOtherId = id !== '' && call?.id !== '' && id !== call?.id
    const args = callArgumentsText(called.arguments)
    if (!call || hasOtherId || (id === '' && startsCall(stringOrEmpty(called.name), args, call, hasIndex))) {
      if (this.#calls.length >= maxAnswerCalls) return
      call = { id, name: '', arguments: [] }
      this.#calls.push(call)
      this.#byPlace.set(key, call)
    }
    call.id ||= id
    // Most servers send the name once; some repeat it with every chunk.
    if (stringOrEmpty(called.name) !== call.name) call.name += stringOrEmpty(called.name)
    call.arguments.push(args)
    call.extra = item.extra_content ?? call.extra
  }

  #takeReasoning(message: Readonly<Record<string, unknown>>): void {
    for (const member of ['reasoning_content', 'reasoning'] as const) {
      const text = stringOrEmpty(message[member])
      if (text !== '') this.#reasoning[member] = (this.#reasoning[member] ?? '') + text
    }
    for (const detail of Array.isArray(message.reasoning_details) ? message.reasoning_details : []) {
      if (this.#details.length < maxReasoningDetails) this.#details.push(detail)
    }
  }

  #allReasoning(): Reasoning | undefined {
    const details = this.#details.length > 0 ? { reasoning_details: joinedDetails(this.#details) } : {}
    const all = { ...this.#reasoning, ...details }
    return Object.keys(all).length > 0 ? all : undefined
  }
}

/**
 * Whether a chunk without id is another call. Some servers repeat the name with every chunk, also with those that have
 * no arguments; Gemini's gives all calls the same index.
 */
function startsCall(name: string, args: string, call: PartialCall, hasIndex: boolean): boolean {
  if (name === '' || call.name === '') return false
  if (!hasIndex && name !== call.name) return true
  return /^\s*\{/.test(args) && parseJson(call.arguments.join('')) !== undefined
}

/** Joins the chunks of each detail about the reasoning, which have the same index. */
function joinedDetails(chunks: readonly unknown[]): readonly unknown[] {
  const joined: unknown[] = []
  for (const chunk of chunks) {
    const last = joined.at(-1)
    const isMore = isRecord(chunk) && isRecord(last) && chunk.index !== undefined && chunk.index === last.index
    if (!isMore) joined.push(chunk)
    else {
      const texts = ['text', 'summary', 'data'].filter((member) => typeof chunk[member] === 'string')
      const more = texts.map((member) => [member, stringOrEmpty(last[member]) + stringOrEmpty(chunk[member])])
      joined[joined.length - 1] = { ...last, ...chunk, ...Object.fromEntries(more) }
    }
  }
  return joined
}

const interruptedReason = 'interrupted'

const isCutOff = (reason: EndReason): boolean => reason === 'length' || reason === interruptedReason

/** The finish reasons of different servers. An unknown one means that the answer is complete. */
const finishReasons: Readonly<Record<string, EndReason>> = {
  stop: 'stop',
  eos: 'stop',
  length: 'length',
  max_tokens: 'length',
  model_length: 'length',
  tool_calls: 'calls',
  function_call: 'calls',
  content_filter: 'filtered',
  [interruptedReason]: 'interrupted',
  // The server gave up: Mistral and OpenRouter, vLLM and SGLang, DeepSeek.
  error: 'interrupted',
  abort: 'interrupted',
  insufficient_system_resource: 'interrupted',
}

/** Why the answer ended; empty if it has not. Some servers send the text "null" with every chunk. */
function finishOf({ finish_reason: reason }: Readonly<Record<string, unknown>>): string {
  const finish = stringOrEmpty(reason).toLowerCase()
  return finish === 'null' || finish === 'none' ? '' : finish
}

/** Takes the place of the last chunk if a stream ended with neither a finish reason nor `[DONE]`. */
export const interruption = { choices: [{ delta: {}, finish_reason: interruptedReason }] }

/** Whether a chunk says why the answer ended. Some servers send an empty reason with every chunk. */
export function isFinished(chunk: unknown): boolean {
  const choice = choiceOf(chunk)
  return choice !== undefined && finishOf(choice) !== ''
}

/** The first choice, if the object contains a part of it. */
function choiceOf(object: unknown): Readonly<Record<string, unknown>> | undefined {
  const choices = isRecord(object) && Array.isArray(object.choices) ? object.choices : []
  return choices.filter(isRecord).find(({ index }) => index === 0 || typeof index !== 'number')
}

const callArgumentsText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)

const stringOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The text of a message's content. Most servers send a string, some send parts. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return stringOrEmpty(content)
  return content.map((part) => (isRecord(part) ? stringOrEmpty(part.text) : '')).join('')
}

/** The reasoning among the parts of a message's content, as Mistral sends it. */
function thinkingOf(content: unknown): string {
  if (!Array.isArray(content)) return ''
  return content.map((part) => (isRecord(part) ? contentText(part.thinking) : '')).join('')
}

const tokenCount = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

function tokenUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined
  const [prompt, completion] = [tokenCount(usage.prompt_tokens), tokenCount(usage.completion_tokens)]
  if (prompt === undefined && completion === undefined) return undefined
  return { promptTokens: prompt ?? 0, completionTokens: completion ?? 0 }
}
