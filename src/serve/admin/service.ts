import type { Caller } from '../../core/call.ts'
import type { Json } from '../../core/json.ts'
import type * as view from './contract.ts'

/**
 * The admin API's operations. Methods that take a caller show admins everything, and other callers only what their
 * agent may see. Methods without a caller are for admins only, which the routes enforce.
 */
export interface AdminService extends SearchAdmin {
  overview(caller: Caller): view.Overview
  series(caller: Caller, asked: view.SeriesQuery): view.Series
  stats(caller: Caller, by: view.Stats['by']): view.Stats
  servers(caller: Caller): readonly view.ServerView[]
  server(caller: Caller, name: string): view.ServerDetail
  /** Resolves when the action is done, or after a maximum waiting time. */
  control(caller: Caller, name: string, action: ServerAction): Promise<view.ServerView>
  /** Starts an OAuth sign-in that ends with a redirect to `redirect`. Undefined if signing in is not supported. */
  signIn?(caller: Caller, name: string, redirect: URL): Promise<view.SignInView>
  /** Completes a sign-in with the query parameters from the redirect, and returns the server's name. */
  signedIn?(answer: URLSearchParams): Promise<string>
  tools(caller: Caller, asked: view.ToolsQuery): view.ToolPage
  tool(caller: Caller, name: string): Promise<view.ToolDetail>
  /** Calls the tool through the pipeline, as an agent that the caller may act as. */
  tryTool(caller: Caller, name: string, given: TryToolInput, signal: AbortSignal): Promise<view.TryResult>
  calls(caller: Caller, asked: view.CallsQuery): readonly view.CallView[]
  call(caller: Caller, id: string): Promise<view.CallDetail | undefined>
  audit(asked: view.AuditListQuery): Promise<view.AuditPage>
  chain(): view.ChainView
  /** Starts a check of the audit log, unless one is running. */
  verifyChain(): view.ChainView
  agents(): readonly view.AgentView[]
  matrix(asked: view.ToolsQuery): view.Matrix
  why(caller: Caller, asked: view.WhyParams): Promise<view.WhyView>
  config(): view.ConfigView
  lastReload(): view.ReloadEvent | undefined
  reload(caller: Caller): Promise<view.ReloadEvent>
  /** Calls `listener` when calls begin or end. */
  onCalls(listener: (calls: readonly view.CallView[]) => void): Disposable
  onReload(listener: (event: view.ReloadEvent) => void): Disposable
}

export interface SearchAdmin {
  search(caller: Caller, text: string): view.SearchResult
}

export type ServerAction = 'restart' | 'enable' | 'disable' | 'refresh'

export interface TryToolInput {
  /** The arguments with their original bytes. */
  readonly arguments: Json<Record<string, unknown>>
  readonly agent?: string | undefined
}
