export type CheckStatus = 'ok' | 'warning' | 'problem'

/** What a check found. */
export interface CheckFinding {
  readonly status: CheckStatus
  /** A sentence without a full stop. */
  readonly message: string
  /** What to do: a command or a line of configuration to copy, if possible. */
  readonly remedy?: string
  /** Further lines, such as stderr. */
  readonly details?: readonly string[]
}

/** One thing to look at. */
export interface DoctorCheck {
  /** `port`, `server.memory`: for scripts. */
  readonly name: string
  /** Rejects only if the check itself failed. */
  run(signal: AbortSignal): Promise<CheckFinding | readonly CheckFinding[]>
}

/** A finding with the name of its check and the time it took. */
export interface CheckResult extends CheckFinding {
  readonly name: string
  readonly ms: number
}

type More = Pick<CheckFinding, 'details'>

export const ok = (message: string, more: Omit<CheckFinding, 'status' | 'message'> = {}): CheckFinding => ({
  status: 'ok',
  message,
  ...more,
})

export const warning = (message: string, remedy?: string, more: More = {}): CheckFinding => ({
  status: 'warning',
  message,
  ...(remedy !== undefined && { remedy }),
  ...more,
})

export const problem = (message: string, remedy: string, more: More = {}): CheckFinding => ({
  status: 'problem',
  message,
  remedy,
  ...more,
})
