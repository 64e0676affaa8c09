import { readPage } from '../../../src/telemetry/metrics/exposition.fixture.ts'
import { goodHeaders, rawRequest, rawSession } from '../../fixtures/raw-http.ts'
import type { Endpoint } from '../../fixtures/toolway.ts'

/** What came of a call: its text, or the code of ours that says why not. */
export type Call = (tool: string, args?: object) => Promise<string>

/** Calls tools over HTTP, as the agent that is named. */
export async function caller(endpoint: Endpoint, agent?: string): Promise<Call> {
  const session = await rawSession(endpoint, agent === undefined ? {} : { headers: { 'toolway-agent': agent } })
  return async (name, args = {}) => {
    const { result, error } = await session.answer('tools/call', { name, arguments: args })
    const { content = [], _meta = {} } = (result ?? {}) as { content?: { text: string }[]; _meta?: object }
    const refused = (_meta as Record<string, unknown>)['dev.toolway/error'] ?? error?.data
    return (refused as { code?: string } | undefined)?.code ?? content.map(({ text }) => text).join('')
  }
}

/** GET of another path of the same server. */
export const get = (endpoint: Endpoint, path: string) =>
  rawRequest(endpoint.url, { method: 'GET', path, headers: goodHeaders(endpoint) })

/** What the metrics say: of one server, where one is named. */
export async function reading(endpoint: Endpoint, metric: string, server?: string): Promise<number | undefined> {
  const { samples = [] } = readPage((await get(endpoint, '/metrics')).text).get(metric) ?? {}
  return samples.find(({ labels }) => server === undefined || labels.get('server') === server)?.value
}
