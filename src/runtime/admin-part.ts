import type { ConfigSource } from '../config/locate.ts'
import type { Config } from '../config/schema.ts'
import type { Access } from '../core/access.ts'
import type { Why } from '../policy/explanation.ts'
import type { Authenticate } from '../serve/auth/identity.ts'
import type { HttpEndpoint, ListeningServer } from '../serve/http/endpoint.ts'
import type { Cluster } from './cluster.ts'
import type { Generation } from './generation.ts'
import type { ProcessState } from './process-state.ts'
import type { ReloadHistory } from './reload.ts'
import type { SharedApprovals } from './shared-approvals.ts'

type MetricsPage = { readonly body: string; readonly contentType: string }

/** Returns the metrics in the format that the Accept header selects. */
export type MetricsPages = (accept: string | undefined) => MetricsPage | Promise<MetricsPage>

/** What the admin part gets from a gateway. */
export interface GatewayParts {
  readonly processState: ProcessState
  /** The configuration that the process was started with: its address and its stores stay in use after a reload. */
  readonly config: Config
  readonly access: Access
  readonly authenticate: Authenticate
  current(): Generation
  readonly sharedApprovals: SharedApprovals
  readonly reload: {
    /** Reloads the configuration. Never rejects; a failure is recorded in the history. */
    now(): Promise<unknown>
    readonly history: ReloadHistory
  }
  /** Actions that apply to all processes that serve this gateway. */
  readonly cluster: Pick<Cluster, 'control' | 'keysChanged'>
  /** Where the configuration is read from; undefined if the gateway was started by a program. */
  readonly source?: ConfigSource | undefined
  why(agent: string, tool: string, options: { readonly authenticated: boolean }): Promise<Why>
  /** Undefined if metrics are disabled. */
  readonly metrics: MetricsPages | undefined
  /** This worker's number and the number of workers; undefined if there is only one process. */
  readonly worker?: { readonly number: number; readonly of: number } | undefined
  readonly startedAt: number
}

/** The part of a gateway that operators use. It loads its code when that is needed for the first time. */
export interface AdminPart extends AsyncDisposable {
  endpoint(server: ListeningServer): Promise<HttpEndpoint>
  /** Opens the inbox, for its webhook. */
  startInbox(): void
}
