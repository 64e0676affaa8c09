import type {
  AgentView,
  AuditPage,
  CallDetail,
  CallView,
  ChainView,
  ChatView,
  ConfigView,
  Matrix,
  Overview,
  ReloadEvent,
  SearchResult,
  Series,
  ServerDetail,
  ServerView,
  SignInView,
  Stats,
  ToolDetail,
  ToolPage,
  TryResult,
  WhyView,
} from '../../../src/serve/admin/contract.ts'
import { type QueryValues, request } from './request.ts'

type Signal = AbortSignal | undefined

const get =
  <T>(path: string, values?: QueryValues) =>
  (signal: Signal) =>
    request<T>(path, { signal, ...(values && { values }) })

const post = <T>(path: string, body?: unknown) => request<T>(path, { method: 'POST', body })

const encode = encodeURIComponent

/** The admin API's queries, in the form that `useResource` takes. */
export const queries = {
  overview: get<Overview>('overview'),
  series: (from: number, to: number, server?: string) =>
    get<Series>('series', { from: Math.round(from), to: Math.round(to), server }),
  search: (q: string) => get<SearchResult>('search', { q }),
  stats: (by: Stats['by']) => get<Stats>('stats', { by }),
  servers: get<readonly ServerView[]>('servers'),
  server: (name: string) => get<ServerDetail>(`servers/${encode(name)}`),
  tools: (values: QueryValues) => get<ToolPage>('tools', values),
  tool: (name: string) => get<ToolDetail>(`tools/${encode(name)}`),
  calls: (values: QueryValues) => get<readonly CallView[]>('calls', values),
  call: (id: string) => get<CallDetail>(`calls/${encode(id)}`),
  audit: (values: QueryValues) => get<AuditPage>('audit', values),
  chain: get<ChainView>('audit/chain'),
  chat: get<ChatView>('chat'),
  agents: get<readonly AgentView[]>('agents'),
  matrix: (values: QueryValues) => get<Matrix>('agents/matrix', values),
  why: (agent: string, tool: string) => get<WhyView>('why', { agent, tool }),
  config: get<ConfigView>('config'),
}

export type ServerAction = 'restart' | 'refresh' | 'enable' | 'disable'

/** The admin API requests that have side effects. */
export const actions = {
  server: (name: string, action: ServerAction) => post<ServerView>(`servers/${encode(name)}/${action}`),
  signIn: (name: string) => post<SignInView>(`servers/${encode(name)}/sign-in`),
  /** The arguments are passed as JSON text, because parsing would round large numbers. */
  tryTool: (name: string, args: string, agent: string | undefined) =>
    request<TryResult>(`tools/${encode(name)}/call`, {
      method: 'POST',
      text: `{"arguments":${args}${agent === undefined ? '' : `,"agent":${JSON.stringify(agent)}`}}`,
    }),
  verifyChain: () => post<ChainView>('audit/chain/verify'),
  reload: () => post<ReloadEvent>('config/reload'),
}
