import type { Caller } from '../../core/call.ts'
import type { Json } from '../../core/json.ts'
import type {
  AgentView,
  AuditPage,
  CallDetail,
  CallView,
  ChainView,
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
} from './contract.ts'

/**
 * All that the admin API can show and do. What takes a caller shows that caller what its agent may see, and an admin
 * everything; what takes none is for admins, and whoever calls it has seen to that.
 */
export interface AdminService {
  overview(caller: Caller): Overview
  series(caller: Caller, range: TimeRange): Series
  stats(caller: Caller, by: Stats['by']): Stats
  servers(caller: Caller): readonly ServerView[]
  server(caller: Caller, name: string): ServerDetail
  /** Changes how a server runs; settles when that is done, or takes too long to wait for. */
  control(caller: Caller, name: string, action: ServerAction): Promise<ServerView>
  /** Begins to sign in to a server; the answer comes to `redirect`. Undefined where there is nothing to sign in with. */
  signIn?(caller: Caller, name: string, redirect: URL): Promise<SignInView>
  /** Takes the answer that a browser brings; tells which server it was for. */
  signedIn?(answer: URLSearchParams): Promise<string>
  tools(caller: Caller, asked: ToolsQuery): ToolPage
  tool(caller: Caller, name: string): Promise<ToolDetail>
  /** A call like any other, as an agent that the caller may be. */
  tryTool(caller: Caller, name: string, given: TryToolInput, signal: AbortSignal): Promise<TryResult>
  calls(caller: Caller, asked: CallsQuery): readonly CallView[]
  call(caller: Caller, id: string): Promise<CallDetail | undefined>
  audit(asked: AuditListQuery): Promise<AuditPage>
  chain(): ChainView
  /** Begins to check the audit log, unless that is under way. */
  verifyChain(): ChainView
  agents(): readonly AgentView[]
  matrix(asked: ToolsQuery): Matrix
  why(caller: Caller, asked: { readonly agent?: string | undefined; readonly tool: string }): Promise<WhyView>
  config(): ConfigView
  /** The latest attempt to take over a changed configuration. */
  lastReload(): ReloadEvent | undefined
  reload(caller: Caller): Promise<ReloadEvent>
  /** Calls that begin or end. */
  onCalls(listener: (calls: readonly CallView[]) => void): Disposable
  onReload(listener: (event: ReloadEvent) => void): Disposable
}

export type ServerAction = 'restart' | 'enable' | 'disable' | 'refresh'

/** A stretch of time; its ends are the admin's to choose where they are missing. */
export interface TimeRange {
  readonly from?: number | undefined
  readonly to?: number | undefined
}

interface Paged {
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface ToolsQuery extends Paged {
  /** Words that must all stand in the name, title, description or server of a tool. */
  readonly query?: string | undefined
  readonly server?: string | undefined
}

export interface TryToolInput {
  /** In the bytes in which they came. */
  readonly arguments: Json<Record<string, unknown>>
  readonly agent?: string | undefined
}

export interface CallsQuery {
  readonly agent?: string | undefined
  readonly server?: string | undefined
  readonly name?: string | undefined
  readonly operation?: string | undefined
  readonly outcome?: CallView['outcome'] | undefined
  /** Anywhere in the call's id, names, principal or code. */
  readonly text?: string | undefined
  readonly limit: number
}

export interface AuditListQuery extends Paged, TimeRange {
  readonly agent?: string | undefined
  readonly principal?: string | undefined
  readonly server?: string | undefined
  readonly tool?: string | undefined
  readonly operation?: string | undefined
  readonly decision?: string | undefined
  readonly reason?: string | undefined
  readonly code?: string | undefined
  readonly call?: string | undefined
  /** Of the chat or the call that caused it. */
  readonly parent?: string | undefined
  readonly text?: string | undefined
}
