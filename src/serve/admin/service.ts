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
  WhyParams,
  WhyView,
} from './contract.ts'

/**
 * The operations of the admin API. Methods with a caller show what the caller's agent may see, and everything to
 * admins; methods without one are for admins only, which the routes enforce.
 */
export interface AdminService {
  overview(caller: Caller): Overview
  series(caller: Caller, range: TimeRange): Series
  stats(caller: Caller, by: Stats['by']): Stats
  servers(caller: Caller): readonly ServerView[]
  server(caller: Caller, name: string): ServerDetail
  /** Resolves when the action is done or takes too long. */
  control(caller: Caller, name: string, action: ServerAction): Promise<ServerView>
  /** Starts an OAuth sign-in, which redirects to `redirect`. Undefined if sign-in is not available. */
  signIn?(caller: Caller, name: string, redirect: URL): Promise<SignInView>
  /** Completes a sign-in with the parameters of the redirect; returns the server's name. */
  signedIn?(answer: URLSearchParams): Promise<string>
  tools(caller: Caller, asked: ToolsQuery): ToolPage
  tool(caller: Caller, name: string): Promise<ToolDetail>
  /** Calls the tool through the pipeline, as an agent that the caller may act as. */
  tryTool(caller: Caller, name: string, given: TryToolInput, signal: AbortSignal): Promise<TryResult>
  calls(caller: Caller, asked: CallsQuery): readonly CallView[]
  call(caller: Caller, id: string): Promise<CallDetail | undefined>
  audit(asked: AuditListQuery): Promise<AuditPage>
  chain(): ChainView
  /** Starts a check of the audit log, unless one is running. */
  verifyChain(): ChainView
  agents(): readonly AgentView[]
  matrix(asked: ToolsQuery): Matrix
  why(caller: Caller, asked: WhyParams): Promise<WhyView>
  config(): ConfigView
  lastReload(): ReloadEvent | undefined
  reload(caller: Caller): Promise<ReloadEvent>
  /** Called when calls begin or end. */
  onCalls(listener: (calls: readonly CallView[]) => void): Disposable
  onReload(listener: (event: ReloadEvent) => void): Disposable
}

export type ServerAction = 'restart' | 'enable' | 'disable' | 'refresh'

export interface TryToolInput {
  /** With their original bytes. */
  readonly arguments: Json<Record<string, unknown>>
  readonly agent?: string | undefined
}
