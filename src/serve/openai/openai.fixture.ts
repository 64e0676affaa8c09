import type { Chat } from '../../core/chat.ts'
import { openTestServer, token } from '../http/server.fixture.ts'
import { createTestChat, type TestChat } from './chat.fixture.ts'
import type { OpenAiError } from './chat.ts'

export const hi = { role: 'user', content: 'Hi' }

type Settings = Parameters<typeof openTestServer>[0] & { readonly scripted?: TestChat }

/** A real HTTP server with a scripted chat behind it. */
export async function openChatServer({ scripted = createTestChat(), ...settings }: Settings = {}) {
  const chat: () => Chat | undefined = settings.chat ?? (() => scripted)
  const test = await openTestServer({ ...settings, chat })
  const path = '/v1/chat/completions'
  return {
    ...test,
    chat: scripted,
    baseURL: `${test.origin}/v1`,
    apiKey: token,
    post: (body: object = {}, headers: Record<string, string | undefined> = {}) =>
      test.fetchRaw({ path, headers, body: { messages: [hi], ...body } }),
    /** A request whose whole answer is JSON. */
    async ask(body: object = {}, headers: Record<string, string | undefined> = {}, at = path) {
      const { status, headers: got, text } = await test.raw({ path: at, headers, body: { messages: [hi], ...body } })
      const json = parsed(text)
      return { status, headers: got, text, json, error: json.error as OpenAiError['error'] }
    },
    async get(at: string, headers: Record<string, string | undefined> = {}) {
      const { status, text, headers: got } = await test.raw({ method: 'GET', path: at, headers })
      return { status, headers: got, json: parsed(text) }
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
const parsed = (text: string): any => JSON.parse(text)

/** The data of every event in a stream, parsed where it is JSON; comments are left out. */
export const eventsOf = (text: string) =>
  text
    .split('\n\n')
    .flatMap((block) => (block.startsWith('data: ') ? [block.slice(6)] : []))
    .map((data) => (data === '[DONE]' ? data : parsed(data)))
