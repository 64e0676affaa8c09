import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { introduction, type Message } from '../../fixtures/line-server.ts'

export const ticketsToken = 'test-tickets-token'

export interface Tickets extends AsyncDisposable {
  readonly host: string
  /** The tools that were called, in order. */
  readonly called: readonly string[]
}

const tool = (name: string, readOnlyHint?: boolean, members = ['id', 'path']) => ({
  name,
  description: `Tickets: ${name}`,
  inputSchema: { type: 'object', properties: Object.fromEntries(members.map((key) => [key, { type: 'string' }])) },
  ...(readOnlyHint !== undefined && { annotations: { readOnlyHint } }),
})
const tools = [tool('get_ticket', true), tool('count_tickets'), tool('close_ticket', false), tool('attach_file')]
const databaseTools = [tool('execute_raw_sql', undefined, ['sql']), tool('query', undefined, ['query'])]

/**
 * A server of tickets over HTTP that wants its token: a marked read, a marked write, and tools that say nothing. The
 * first call of each tool for the ticket "late" gets no answer. At /database, it has tools with SQL instead.
 */
export async function startTickets(): Promise<Tickets> {
  const called: string[] = []
  const results: Readonly<Record<string, (params: Record<string, unknown>) => object>> = {
    initialize: () => introduction('tickets'),
    'tools/call'({ name }) {
      called.push(String(name))
      return { content: [{ type: 'text', text: `${name} ${called.length}` }] }
    },
  }
  const server = createServer(async (request, response) => {
    if (request.headers.authorization !== `Bearer ${ticketsToken}`) return void response.writeHead(401).end()
    const listed = request.url === '/database' ? databaseTools : request.url === '/mcp' ? tools : undefined
    if (request.method !== 'POST' || !listed) return void response.writeHead(405).end()
    const { id, method, params = {} } = (await json(request)) as Message
    if (id === undefined) return void response.writeHead(202).end()
    const { id: ticket } = (params.arguments ?? {}) as { id?: string }
    if (ticket === 'late' && !called.includes(String(params.name))) return void called.push(String(params.name))
    const result = method === 'tools/list' ? { tools: listed } : results[method]?.(params)
    const answer = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    called,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
