/** The gateway's own state, as far as the tool cannot see it for itself. */
export interface GatewayStatus {
  readonly version: string
  readonly reload_status: {
    readonly attempts: number
    readonly successes: number
    readonly last_error: string | null
    readonly last_error_at: string | null
    readonly last_success_at: string | null
    readonly warnings: readonly string[]
  }
  readonly policy_state: {
    /** The agents that have rules; none means one agent that may use everything. */
    readonly agents: readonly string[]
    readonly default_agent: string | null
    readonly deny_on_missing_agent: boolean
  }
  readonly config_paths: readonly string[]
}
