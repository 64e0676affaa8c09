import type { Caller } from '../core/call.ts'
import type { Json } from '../json/json.ts'
import type { ServerAction } from '../runtime/cluster.ts'
import type * as view from './contract.ts'

/**
 * The admin API's operations. Methods that take a caller show admins everything, and other callers only what their
 * agent may see. Methods without a caller are for admins only, which the routes enforce.
 */
export interface AdminService
  extends ApprovalsService,
    ConfigEditService,
    InboxService,
    KeysService,
    PinsService,
    PlaygroundAdmin,
    PolicyService,
    SearchAdmin {
  overview(caller: Caller): view.Overview
  series(caller: Caller, asked: view.SeriesQuery): Awaitable<view.Series>
  stats(caller: Caller, asked: view.StatsQuery): Awaitable<view.Stats>
  servers(caller: Caller): readonly view.ServerView[]
  server(caller: Caller, name: string): view.ServerDetail
  /** Resolves when the action is done, or after a maximum waiting time. */
  control(caller: Caller, name: string, action: ServerAction): Promise<view.ServerView>
  /** Refreshes the lists of all servers that are turned on, a few at a time. Resolves as `control` does. */
  refreshServers(caller: Caller): Promise<view.RefreshedServers>
  /** Starts an OAuth sign-in that ends with a redirect to `redirect`. Undefined if signing in is not supported. */
  signIn?(caller: Caller, name: string, redirect: URL): Promise<view.SignInView>
  /** Completes a sign-in with the query parameters from the redirect, and returns the server's name. */
  signedIn?(answer: URLSearchParams): Promise<string>
  /** The OAuth grants that are stored for a server. Admins only. */
  grants(name: string): Promise<readonly view.GrantView[]>
  /** Deletes a server's OAuth grants, or that of one principal. Returns those that are left. */
  signOut(caller: Caller, name: string, principal?: string): Promise<readonly view.GrantView[]>
  tools(caller: Caller, asked: view.ToolsQuery): view.ToolPage
  tool(caller: Caller, name: string): Promise<view.ToolDetail>
  /** Calls the tool through the pipeline, as an agent that the caller may act as. */
  tryTool(caller: Caller, name: string, given: TryToolInput, signal: AbortSignal): Promise<view.TryResult>
  /** The latest calls that are in memory, newest first. */
  calls(caller: Caller, asked: Pick<view.CallsQuery, 'limit'>): readonly view.CallView[]
  /** Calls in memory and in the history. */
  pastCalls(caller: Caller, asked: view.CallsQuery): Promise<view.CallPage>
  callChoices(caller: Caller, asked: view.CallRange): Promise<view.CallChoicesView>
  call(caller: Caller, id: string): Promise<view.CallDetail | undefined>
  /** Makes a captured call again, as an agent that the caller may act as. */
  runAgain(caller: Caller, id: string, signal: AbortSignal): Promise<view.TryResult>
  audit(asked: view.AuditListQuery): Promise<view.AuditPage>
  chain(): view.ChainView
  /** Starts a check of the audit log, unless one is running. */
  verifyChain(): view.ChainView
  agents(): readonly view.AgentView[]
  matrix(asked: view.ToolsQuery): view.Matrix
  /** The tools of the caller's agent. Waits for servers that are starting. */
  agentTools(caller: Caller, server?: string, timeoutMs?: number): Promise<view.AgentTools>
  why(caller: Caller, asked: view.WhyParams): Promise<view.WhyView>
  config(): view.ConfigView
  lastReload(): view.ReloadEvent | undefined
  reload(caller: Caller): Promise<view.ReloadEvent>
  /** Calls `listener` when calls begin or end. */
  onCalls(listener: (calls: readonly view.CallView[]) => void): Disposable
  onReload(listener: (event: view.ReloadEvent) => void): Disposable
}

/** Calls that wait for a person. */
export interface ApprovalsService {
  /** Admins see all approvals, other callers those that they may answer. */
  approvals(caller: Caller): readonly view.ApprovalView[]
  answerApproval(caller: Caller, id: string, answer: view.AnswerApproval): Promise<view.AnsweredApproval>
  onApprovals(listener: () => void): Disposable
}

type Awaitable<T> = T | Promise<T>

/** Trying out what the gateway serves. */
export interface PlaygroundAdmin {
  /** Runs an operation and reports what happens. The last event is `end`; rejects before the first one, or if it fails. */
  playground(caller: Caller, given: PlaygroundInput, stream: PlaygroundStream): Promise<void>
  /** Answers a request that a playground call of the same principal waits for. */
  playgroundAnswer(caller: Caller, ask: string, answer: view.PlaygroundAnswer): void
  completions(caller: Caller, given: view.CompletionInput, signal: AbortSignal): Promise<view.CompletionView>
  resources(caller: Caller, asked: view.ToolsQuery): view.ResourcePage
  prompts(caller: Caller, asked: view.ToolsQuery): view.PromptPage
}

export interface PlaygroundInput extends Omit<view.PlaygroundBody, 'arguments'> {
  /** The arguments with their original bytes. */
  readonly arguments: Json<Record<string, unknown>>
}

export interface PlaygroundStream {
  readonly signal: AbortSignal
  send(event: view.PlaygroundEvent): void
}

/** Edits of the operator's own configuration file. Admins only. */
export interface ConfigEditService {
  configFile(): Promise<view.ConfigFileView>
  /** Says what an edit would change. Writes nothing. */
  previewEdit(edit: view.ConfigEdit): Promise<view.EditProposal>
  /** Writes an edit and reloads. Rejects with a conflict if it would not write what the preview with `hash` showed. */
  applyEdit(caller: Caller, edit: view.ConfigEdit, hash?: string): Promise<view.AppliedEdit>
  configEdits(): Promise<readonly view.ConfigEditRecord[]>
  /** Starts the servers that an edit adds or changes, once, and says what they offer. */
  testServers(caller: Caller, edit: view.ConfigEdit, signal: AbortSignal): Promise<readonly view.ServerTest[]>
  /** The servers in the files of the MCP clients on the gateway's machine. */
  foundServers(): Promise<readonly view.FoundServerView[]>
  serverForm(): view.ServerForm
  /** Searches the MCP registry of the setting `registry.url`. Rejects if there is none. */
  searchRegistry(text: string, signal: AbortSignal): Promise<readonly view.RegistryServerView[]>
  serverDefinition(name: string): Promise<view.ServerDefinitionView>
}

/** Edits of the policy: their effect before they are saved. Admins only. */
export interface PolicyService {
  policySettings(): Promise<view.PolicySettings>
  previewPolicy(edit: view.ConfigEdit): Promise<view.PolicyPreview>
  /** Applies the policy of an edit to recorded calls. Ends with the result. */
  replayPolicy(edit: view.ConfigEdit, days: number, signal: AbortSignal): AsyncIterable<view.ReplayStreamEvent>
}

/** API keys. Only `createKey` and `rotateKey` return a key's secret, once. */
export interface KeysService {
  keys(): view.KeysView
  createKey(caller: Caller, wanted: view.CreateKey): Promise<view.IssuedKeyView>
  rotateKey(caller: Caller, id: string, wanted: view.RotateKey): Promise<view.IssuedKeyView>
  revokeKey(caller: Caller, id: string): Promise<view.KeysView>
}

/** What needs a person. */
export interface InboxService {
  inbox(): view.InboxView
  /** Hides an item until it changes. */
  dismissItem(caller: Caller, id: string): Promise<view.InboxView>
  onInbox(listener: (inbox: view.InboxView) => void): Disposable
}

/** Pinned definitions. */
export interface PinsService {
  pins(asked: view.PinsQuery): view.PinPage
  pin(label: string): view.PinDetail
  /** Approves exactly the definition with this hash. */
  approvePin(caller: Caller, label: string, hash: string): Promise<view.PinDetail>
  /** Approves all these definitions or none: rejects with a conflict if a server has changed one of them. */
  approvePins(caller: Caller, definitions: view.PinDecisions['definitions']): Promise<view.ApprovedPins>
  /** Blocks the definition with this hash until it is approved. */
  blockPin(caller: Caller, label: string, hash: string): Promise<view.PinDetail>
}

export interface SearchAdmin {
  search(caller: Caller, text: string): view.SearchResult
}

export interface TryToolInput {
  /** The arguments with their original bytes. */
  readonly arguments: Json<Record<string, unknown>>
  readonly agent?: string | undefined
  readonly timeoutMs?: number | undefined
}
