import { type RpcAnswer, rawSession, rpc } from '../../fixtures/raw-http.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'

/** A client that counts what a model would read and write: the bodies of JSON-RPC, about four characters a token. */
export interface Conversation {
  readonly tokens: { readonly read: number; readonly written: number }
  list(): Promise<readonly { readonly name: string; readonly description: string }[]>
  /** Calls a tool; gives its structured content, or its text read as JSON. Throws what it refuses. */
  call<T>(name: string, args: object): Promise<T>
}

export async function converse(endpoint: Endpoint, agent: string): Promise<Conversation> {
  const session = await rawSession(endpoint, { headers: { 'toolway-agent': agent } })
  const characters = { read: 0, written: 0 }
  const ask = async (method: string, params: object): Promise<RpcAnswer> => {
    characters.written += rpc(1, method, params).length
    const text = await session.ask(method, params)
    characters.read += text.length
    return JSON.parse(text)
  }
  return {
    get tokens() {
      return { read: Math.ceil(characters.read / 4), written: Math.ceil(characters.written / 4) }
    },
    async list() {
      const { result } = await ask('tools/list', {})
      return (result as unknown as { tools: { name: string; description: string }[] }).tools
    },
    async call(name, args) {
      const { result, error } = await ask('tools/call', { name, arguments: args })
      const [first] = (result?.content ?? []) as { text: string }[]
      if (!result || result.isError) throw new Error(`${name}: ${error?.message ?? first?.text}`)
      return result.structuredContent ?? JSON.parse(first?.text ?? 'null')
    },
  }
}
