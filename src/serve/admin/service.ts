import type { Caller } from '../../core/call.ts'
import type { Json } from '../../core/json.ts'
import type {
  AgentView,
  AuditListQuery,
  AuditPage,
  CallDetail,
  CallsQuery,
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
  TimeRange,
  ToolDetail,
  ToolPage,
  ToolsQuery,
  TryResult,
  WhyQuery,
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
  why(caller: Caller, asked: WhyQuery): Promise<WhyView>
  config(): ConfigView
  /** The latest attempt to take over a changed configuration. */
  lastReload(): ReloadEvent | undefined
  reload(caller: Caller): Promise<ReloadEvent>
  /** Calls that begin or end. */
  onCalls(listener: (calls: readonly CallView[]) => void): Disposable
  onReload(listener: (event: ReloadEvent) => void): Disposable
}

export type ServerAction = 'restart' | 'enable' | 'disable' | 'refresh'

export interface TryToolInput {
  /** In the bytes in which they came. */
  readonly arguments: Json<Record<string, unknown>>
  readonly agent?: string | undefined
}
