import { onTestFinished } from 'vitest'
import * as z from 'zod'
import { createManualClock, type ManualClock } from '../../tests/fixtures/clock.ts'
import { createKeptLog, type KeptLog } from '../../tests/fixtures/log.ts'
import { SearchIndex } from '../catalog/search/search-index.ts'
import { createItem } from '../catalog/snapshot.ts'
import { configSchema } from '../config/schema.ts'
import type { View } from '../core/access.ts'
import type { Chat, ChatEnd, ChatEvent, ChatMessage, ChatRequest } from '../core/chat.ts'
import type { TtlStore } from '../core/stores.ts'
import { createSeal } from '../lib/seal.ts'
import { argumentValidator } from '../policy/arguments/validate.ts'
import { memoryTtlStore } from '../stores/ttl-store.ts'
import {
  createTestGateway,
  mutePeer,
  type TestGateway,
  type TestGatewayOptions,
  user,
} from '../tools/access.fixture.ts'
import { defineTool, type Tool } from '../tools/define-tool.ts'
import { type ChatOptions, ModelChat } from './chat.ts'
import { ClientToolState } from './client-tool-state.ts'
import { createModels } from './models/create-models.ts'
import { key } from './models/model.fixture.ts'
import { type AskedBody, type ModelServer, modelServer, type Reply } from './models/server.fixture.ts'

/** A tool that knows the weather everywhere, but for one place. */
export const forecast: Tool = defineTool({
  name: 'forecast',
  description: 'The weather of a city.',
  input: z.object({ city: z.string(), days: z.int().min(1).max(7).optional() }),
  readOnly: true,
  run: ({ city }) => {
    if (city === 'Atlantis') throw new Error('it sank')
    return `${city}: sunny, 21 degrees`
  },
})

export const add: Tool = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  input: z.object({ a: z.number(), b: z.number() }),
  readOnly: true,
  run: ({ a, b }) => ({ sum: a + b }),
})

export interface Chatting {
  readonly chat: Chat & AsyncDisposable
  readonly server: ModelServer
  readonly gateway: TestGateway
  readonly clock: ManualClock
  readonly log: KeptLog
}

export interface ChattingOptions extends Partial<TestGatewayOptions>, Partial<Pick<ChatOptions, 'clientToolState'>> {
  readonly config?: object
  /** Of the model. */
  readonly model?: object
}

/** Sealed with a secret that all of them share. */
export const handoversIn = (ttlStore: TtlStore): ClientToolState =>
  new ClientToolState(ttlStore, createSeal('a secret of replicas'))

/** The same view with the search of a real catalog: which tools come into question depends on it. */
function searching(view: View): View {
  const among = view.list('tool').map(({ name, entry }) => createItem(entry, { name, origin: 'native', stale: false }))
  const index = new SearchIndex()
  index.update(among)
  return {
    ...view,
    async search(query, asked) {
      const { items, total } = index.search(query, { ...asked, among })
      return { tools: items, total }
    },
  }
}

/** A chat over real tools and a model server that replies by script; all of it ends with the test. */
export async function chatting(replies: readonly Reply[], options: ChattingOptions = {}): Promise<Chatting> {
  const { config = {}, model = {}, clientToolState, ...own } = options
  const server = await modelServer(...replies)
  const gateway = createTestGateway({ servers: { weather: [forecast], arithmetic: [add] }, ...own })
  const clock = createManualClock()
  const log = createKeptLog()
  const { models, chat: section } = configSchema.parse({
    chat: config,
    models: { local: { kind: 'openai', baseUrl: server.baseUrl, model: 'qwen3', apiKey: key, ...model } },
  })
  const made = createModels(models, { clock, log })
  const chat = new ModelChat({
    access: { ...gateway, view: (caller) => searching(gateway.view(caller)) },
    models: made,
    config: section,
    validate: argumentValidator({ log }),
    clock,
    log,
    clientToolState: clientToolState ?? handoversIn(memoryTtlStore(clock)),
  })
  onTestFinished(async () => {
    await chat[Symbol.asyncDispose]()
    await Promise.all([...made.values()].map((model) => model[Symbol.asyncDispose]()))
    await server[Symbol.asyncDispose]()
  })
  return { chat, server, gateway, clock, log }
}

export const requestOf = (said: string | readonly ChatMessage[], changes: Partial<ChatRequest> = {}): ChatRequest => ({
  id: 'chat-1',
  caller: user,
  peer: mutePeer,
  signal: new AbortController().signal,
  messages: typeof said === 'string' ? [{ role: 'user', content: said }] : said,
  ...changes,
})

export interface Heard {
  readonly events: readonly ChatEvent[]
  readonly pieces: readonly string[]
  readonly text: string
  readonly stages: readonly string[]
  readonly end: ChatEnd
}

/** Listens to an answer to its end. */
export async function ask(
  chat: Chat,
  said: string | readonly ChatMessage[],
  changes: Partial<ChatRequest> = {},
): Promise<Heard> {
  const events: ChatEvent[] = []
  for await (const event of chat.answer(requestOf(said, changes))) events.push(event)
  const pieces = events.flatMap((event) => (event.kind === 'text' ? [event.text] : []))
  const end = events.at(-1)
  if (end?.kind !== 'end') throw new Error('an answer without an end')
  return {
    events,
    pieces,
    text: pieces.join(''),
    stages: events.flatMap((event) => (event.kind === 'stage' ? [`${event.stage} ${event.round}`] : [])),
    end,
  }
}

/** Which stage a request of the staged loop belongs to. */
function stageOf({ response_format: format, tools, messages, grammar }: AskedBody): string {
  const name = format?.json_schema?.name
  if (name === 'tool_selection') return 'select'
  if (name === 'final_response') return 'interpret'
  if (tools) return 'call'
  const all = JSON.stringify([messages, grammar])
  return all.includes('selected_tools') ? 'select' : all.includes('"content\\"') ? 'interpret' : 'answer'
}

/** Replies to each stage by its own script, one reply after another; the last one goes on. */
export function byStage(script: Readonly<Record<string, Reply | readonly Reply[]>>): Reply {
  const counts = new Map<string, number>()
  return (asked, response) => {
    const stage = stageOf(asked.body)
    const replies = [script[stage] ?? []].flat()
    const count = counts.get(stage) ?? 0
    counts.set(stage, count + 1)
    const reply = replies[Math.min(count, replies.length - 1)]
    if (!reply) throw new Error(`nothing to say in the stage ${stage}`)
    return reply(asked, response)
  }
}
