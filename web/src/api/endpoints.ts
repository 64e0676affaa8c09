import type {
  AgentView,
  AnswerApproval,
  AnsweredApproval,
  AppliedEdit,
  ApprovalView,
  ApprovedPins,
  AuditPage,
  CallChoicesView,
  CallDetail,
  CallPage,
  ChainView,
  ChatView,
  ConfigEdit,
  ConfigEditRecord,
  ConfigFileView,
  ConfigView,
  EditProposal,
  EndpointView,
  FoundServerView,
  GrantView,
  InboxView,
  IssuedKeyView,
  KeysView,
  KeyView,
  Matrix,
  OverridePreview,
  Overview,
  PinDetail,
  PinPage,
  PinView,
  PolicyPreview,
  PolicySettings,
  PromptPage,
  RefreshedServers,
  RegistryServerView,
  ReloadEvent,
  ResourcePage,
  SearchResult,
  Series,
  ServerDefinitionView,
  ServerDetail,
  ServerForm,
  ServerTest,
  ServerView,
  SignInView,
  SkillDetail,
  SkillPage,
  Stats,
  ToolDetail,
  ToolPage,
  TryResult,
  WhyView,
} from '../../../src/admin/contract.ts'

import { addressOf, type QueryValues, request } from './request.ts'

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
  endpoints: get<readonly EndpointView[]>('endpoints'),
  series: (from: number, to: number, server?: string) =>
    get<Series>('series', { from: Math.round(from), to: Math.round(to), server }),
  search: (q: string) => get<SearchResult>('search', { q }),
  stats: (by: Stats['by'], from: number, to: number) =>
    get<Stats>('stats', { by, from: Math.round(from), to: Math.round(to) }),
  servers: get<readonly ServerView[]>('servers'),
  server: (name: string) => get<ServerDetail>(`servers/${encode(name)}`),
  grants: (name: string) => get<readonly GrantView[]>(`servers/${encode(name)}/grants`),
  tools: (values: QueryValues) => get<ToolPage>('tools', values),
  tool: (name: string) => get<ToolDetail>(`tools/${encode(name)}`),
  previewOverride: (name: string, override: object) => (signal: Signal) =>
    request<OverridePreview>(`tools/${encode(name)}/preview`, { method: 'POST', body: { override }, signal }),
  resources: (values: QueryValues) => get<ResourcePage>('resources', values),
  prompts: (values: QueryValues) => get<PromptPage>('prompts', values),
  skills: get<SkillPage>('skills'),
  skill: (name: string) => get<SkillDetail>(`skills/${encode(name)}`),
  pins: (values: QueryValues) => get<PinPage>('pins', values),
  pin: (label: string) => get<PinDetail>(`pins/${encode(label)}`),
  calls: (values: QueryValues) => get<CallPage>('calls', values),
  callChoices: (values: QueryValues) => get<CallChoicesView>('calls/choices', values),
  call: (id: string) => get<CallDetail>(`calls/${encode(id)}`),
  approvals: get<readonly ApprovalView[]>('approvals'),
  audit: (values: QueryValues) => get<AuditPage>('audit', values),
  chain: get<ChainView>('audit/chain'),
  chat: get<ChatView>('chat'),
  agents: get<readonly AgentView[]>('agents'),
  matrix: (values: QueryValues) => get<Matrix>('agents/matrix', values),
  why: (agent: string, tool: string) => get<WhyView>('why', { agent, tool }),
  policy: get<PolicySettings>('policy'),
  policyPreview: (edit: ConfigEdit) => (signal: Signal) =>
    request<PolicyPreview>('policy/preview', { method: 'POST', body: edit, signal }),
  keys: get<KeysView>('keys'),
  config: get<ConfigView>('config'),
  configFile: get<ConfigFileView>('config/file'),
  configEdits: get<readonly ConfigEditRecord[]>('config/history'),
  foundServers: get<readonly FoundServerView[]>('config/servers/found'),
  serverForm: get<ServerForm>('config/servers/form'),
  registry: (search: string) => get<readonly RegistryServerView[]>('config/registry', { search }),
  serverDefinition: (name: string) => get<ServerDefinitionView>(`servers/${encode(name)}/definition`),
  preview: (edit: ConfigEdit) => (signal: Signal) =>
    request<EditProposal>('config/preview', { method: 'POST', body: edit, signal }),
}

/** The address of a file with all matching operations. */
export const auditFile = (filter: QueryValues, format: 'jsonl' | 'csv'): string =>
  addressOf('audit/export', { ...filter, format })

export interface NewKey {
  readonly id: string
  readonly agents: readonly string[]
  readonly admin: boolean
  readonly expiresInMs?: number
}

export type ServerAction = 'restart' | 'refresh' | 'enable' | 'disable'

/** The admin API requests that have side effects. */
export const actions = {
  server: (name: string, action: ServerAction) => post<ServerView>(`servers/${encode(name)}/${action}`),
  refreshServers: () => post<RefreshedServers>('refresh'),
  signIn: (name: string) => post<SignInView>(`servers/${encode(name)}/sign-in`),
  /** An empty principal stands for the grant that all callers share. */
  signOut: (name: string, principal: string) =>
    post<readonly GrantView[]>(`servers/${encode(name)}/sign-out`, { principal }),
  runAgain: (id: string) => request<TryResult>(`calls/${encode(id)}/run`, { method: 'POST', exact: true }),
  answerApproval: (id: string, answer: AnswerApproval) => post<AnsweredApproval>(`approvals/${encode(id)}`, answer),
  createKey: (key: NewKey) => post<IssuedKeyView>('keys', key),
  /** Replaces the secret that was created then. */
  rotateKey: ({ id, created }: KeyView, keepOldMs: number) =>
    post<IssuedKeyView>(`keys/${encode(id)}/rotate`, { keepOldMs, ...(created !== null && { created }) }),
  revokeKey: (id: string) => post<KeysView>(`keys/${encode(id)}/revoke`),
  /** A decision about exactly one definition. */
  pin: (label: string, decision: 'approve' | 'block', hash: string) =>
    post<PinDetail>(`pins/${encode(label)}/${decision}`, { hash }),
  /** Approves exactly these definitions. */
  approvePins: (pins: readonly PinView[]) =>
    post<ApprovedPins>('pins/approve', { definitions: pins.map(({ label, hash }) => ({ label, hash })) }),
  /** The action of an inbox item. */
  inbox: (path: string, body: unknown) =>
    post<{ readonly url?: unknown; readonly state?: unknown } | undefined>(path, body),
  dismissItem: (id: string) => post<InboxView>(`inbox/${encode(id)}/dismiss`),
  verifyChain: () => post<ChainView>('audit/chain/verify'),
  reload: () => post<ReloadEvent>('config/reload'),
  applyEdit: (edit: ConfigEdit, hash: string) => post<AppliedEdit>('config/apply', { ...edit, hash }),
  testServers: (edit: ConfigEdit) => post<readonly ServerTest[]>('config/servers/test', edit),
}
