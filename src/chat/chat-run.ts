import type { Config } from '../config/schema.ts'
import type { Access } from '../core/access.ts'
import type { ChatEnd, ChatEvent, ChatMessage, ChatRequest, ChatStage, FunctionCall } from '../core/chat.ts'
import type { Clock } from '../core/clock.ts'
import type { Entry } from '../core/entry.ts'
import { ToolwayError } from '../core/errors.ts'
import type { Log } from '../core/log.ts'
import type { ClientToolState } from './client-tool-state.ts'
import { lastQuestion, messageText, truncateConversation } from './conversation.ts'
import type { Delta, EndReason, Model, ModelRequest, Usage } from './models/model.ts'

/** Throws INVALID_ARGUMENTS if the arguments do not match; returns a promise if the schema must be compiled first. */
export type ArgumentCheck = (
  schema: Readonly<Record<string, unknown>>,
  args: Readonly<Record<string, unknown>>,
  tool: string,
) => Promise<void> | undefined

export interface ChatDependencies {
  readonly access: Pick<Access, 'handle' | 'answerChat' | 'view'>
  readonly config: Config['chat']
  readonly prompts: Prompts
  readonly validate: ArgumentCheck
  /** Whether models may be offered a tool that the caller may use. */
  mayOffer?(entry: Entry): boolean
  /** State for clients that run their own tools. It outlives this chat: such a client may return after a reload. */
  readonly clientToolState: ClientToolState
  readonly clock: Clock
  readonly log: Log
}

/** The state of one answer. */
export interface ChatRun extends ChatDependencies {
  readonly request: ChatRequest
  /** The conversation, including calls that the client never saw. */
  readonly messages: readonly ChatMessage[]
  readonly model: Model
  /** The request's signal, which is also aborted when the client stops reading. */
  readonly signal: AbortSignal
  /** Tokens used so far. */
  readonly usage: Usage
  /** Milliseconds since the answer began. */
  elapsedMs(): number
  /** Reports, in the log and at the end of the answer, that a fallback was used. The error is only logged. */
  note(sentence: string, error?: unknown): void
  /** Asks the model and adds up the token usage. */
  ask(question: ModelQuery): AsyncGenerator<Delta>
  prompt(name: keyof Prompts, values?: Partial<PromptValues>): string
}

/** A request to the model, without the fields that are the same for all requests within one answer. */
export type ModelQuery = Pick<ModelRequest, 'messages' | 'stream' | 'maxTokens'> &
  Partial<Pick<Extract<ModelRequest, { tools: object }>, 'tools' | 'toolChoice'>> &
  Partial<Pick<Extract<ModelRequest, { constraint: object }>, 'constraint'>>

export interface ChatOutcome {
  readonly reason: ChatEnd['reason']
  readonly handed?: readonly FunctionCall[]
}

/** Yields the events of an answer and returns how it ended. */
export type ChatLoop = AsyncGenerator<ChatEvent, ChatOutcome>

export function outcomeReason(reason: EndReason): ChatOutcome['reason'] {
  if (reason === 'interrupted') return 'length'
  return reason === 'length' || reason === 'filtered' ? reason : 'stop'
}

/** Whether the model ended its answer itself, that is, the answer was not cut off. */
export const isComplete = (reason: EndReason): boolean => reason === 'stop' || reason === 'calls'

/** Whether asking again may help. It does not after a timeout, or if the server is still busy after retries. */
export const isRetryable = (error: unknown): boolean =>
  error instanceof ToolwayError && error.code === 'SERVER_UNAVAILABLE'

/**
 * Returns the result of the work; undefined if the work fails, after `failed` was called with the reason. Rejects only
 * if the request was cancelled.
 */
export const ignoringFailure = <T>(
  run: ChatRun,
  work: Promise<T>,
  failed: (reason: string) => void,
): Promise<T | undefined> =>
  work.catch((error) => {
    if (run.signal.aborted) throw error
    failed(ToolwayError.from(error).message)
    return undefined
  })

/** The event for entering a stage, with the time and the tokens up to now. */
export const stage = ({ usage, elapsedMs }: ChatRun, name: ChatStage, round = 1): ChatEvent => ({
  ...{ kind: 'stage', stage: name, round },
  ...{ atMs: elapsedMs(), usage: { ...usage } },
})

export function createChatRun(
  dependencies: ChatDependencies,
  own: Pick<ChatRun, 'request' | 'model' | 'signal' | 'messages'>,
): ChatRun & { readonly notes: readonly string[] } {
  const { request, model, signal, messages } = own
  const notes: string[] = []
  const usage = { promptTokens: 0, completionTokens: 0 }
  const { clock } = dependencies
  const began = clock.monotonic()
  const lastMessage = messages[lastQuestion(messages)]
  const common: PromptValues = {
    message: messageText(lastMessage?.content ?? ''),
    ...{ tools: '', definitions: '', schema: '' },
    agent: request.caller.agent,
    date: new Date(clock.now()).toISOString().slice(0, 10),
  }
  return {
    ...dependencies,
    ...own,
    usage,
    elapsedMs: () => clock.monotonic() - began,
    notes,
    note(sentence, error) {
      notes.push(sentence)
      const fields = { chat: request.id, model: model.name, note: sentence }
      const reason = error === undefined ? undefined : ToolwayError.from(error).message
      dependencies.log.info(reason === undefined ? fields : { ...fields, reason }, 'the chat loop used a fallback')
    },
    async *ask({ constraint, ...question }) {
      const { temperature, parallelToolCalls } = request
      const schema = JSON.stringify(constraint?.schema)
      const instruction = constraint && dependencies.prompts.schema({ ...common, schema })
      const deltas = model.complete({
        ...question,
        constraint: constraint && { ...constraint, instruction },
        messages: truncateConversation(question.messages, dependencies.config.maxConversation),
        owner: request.caller.principal,
        signal,
        temperature,
        parallelToolCalls,
      } as ModelRequest)
      for await (const delta of deltas) {
        if (delta.kind === 'end' && delta.usage) {
          usage.promptTokens += delta.usage.promptTokens
          usage.completionTokens += delta.usage.completionTokens
        }
        yield delta
      }
    },
    prompt: (name, values) => dependencies.prompts[name]({ ...common, ...values }),
  }
}

interface PromptValues {
  readonly message: string
  /** The candidate tools, one per line. */
  readonly tools: string
  /** The candidate tools with their schemas, and the schema for the answer, as JSON. */
  readonly definitions: string
  readonly schema: string
  readonly agent: string
  /** Today's date, such as 2026-11-30. */
  readonly date: string
}

type Prompts = Readonly<Record<keyof Config['chat']['prompts'], (values: PromptValues) => string>>

/** Compiles the templates once for all conversations. */
export const compilePrompts = (templates: Config['chat']['prompts']): Prompts =>
  Object.fromEntries(Object.entries(templates).map(([name, template]) => [name, compilePrompt(template)])) as Prompts

const promptPlaceholder = /\{(message|tools|definitions|schema|agent|date)\}/

/** Finds all placeholders before filling any in, so that a placeholder in user text is never replaced. */
function compilePrompt(template: string): (values: PromptValues) => string {
  const parts = template.split(promptPlaceholder)
  return (values) => parts.map((part, index) => (index % 2 === 1 ? values[part as keyof PromptValues] : part)).join('')
}
