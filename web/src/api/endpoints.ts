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
import { request, type Values } from './request.ts'

type Signal = AbortSignal | undefined

const get =
  <T>(path: string, values?: Values) =>
  (signal: Signal) =>
    request<T>(path, { signal, ...(values && { values }) })

const post = <T>(path: string, body?: unknown) => request<T>(path, { method: 'POST', body })

const one = encodeURIComponent

/** Queries, in the form that `useResource` takes. */
export const read = {
  overview: get<Overview>('overview'),
  series: (from: number, to: number) => get<Series>('series', { from: Math.round(from), to: Math.round(to) }),
  stats: (by: Stats['by']) => get<Stats>('stats', { by }),
  servers: get<readonly ServerView[]>('servers'),
  server: (name: string) => get<ServerDetail>(`servers/${one(name)}`),
  tools: (values: Values) => get<ToolPage>('tools', values),
  tool: (name: string) => get<ToolDetail>(`tools/${one(name)}`),
  calls: (values: Values) => get<readonly CallView[]>('calls', values),
  call: (id: string) => get<CallDetail>(`calls/${one(id)}`),
  audit: (values: Values) => get<AuditPage>('audit', values),
  chain: get<ChainView>('audit/chain'),
  chat: get<ChatView>('chat'),
  agents: get<readonly AgentView[]>('agents'),
  matrix: (values: Values) => get<Matrix>('agents/matrix', values),
  why: (agent: string, tool: string) => get<WhyView>('why', { agent, tool }),
  config: get<ConfigView>('config'),
}

export type ServerAction = 'restart' | 'refresh' | 'enable' | 'disable'

/** Requests with side effects. */
export const act = {
  server: (name: string, action: ServerAction) => post<ServerView>(`servers/${one(name)}/${action}`),
  signIn: (name: string) => post<SignInView>(`servers/${one(name)}/sign-in`),
  /** The arguments are JSON text, because parsing would round large numbers. */
  tryTool: (name: string, given: string, agent: string | undefined) =>
    request<TryResult>(`tools/${one(name)}/call`, {
      method: 'POST',
      text: `{"arguments":${given}${agent === undefined ? '' : `,"agent":${JSON.stringify(agent)}`}}`,
    }),
  verifyChain: () => post<ChainView>('audit/chain/verify'),
  reload: () => post<ReloadEvent>('config/reload'),
}
