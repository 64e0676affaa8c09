/** How something is: fine, worth a look, or in the way. */
export type CheckStatus = 'ok' | 'warning' | 'problem'

/** What a check found. */
export interface CheckFinding {
  readonly status: CheckStatus
  /** A sentence without its full stop. */
  readonly message: string
  /** What to do about it: a command or a line of configuration to copy, wherever there is one. */
  readonly remedy?: string
  /** Lines that help to understand it. */
  readonly details?: readonly string[]
}

/** One thing to look at. */
export interface DoctorCheck {
  /** `port`, `server.memory`: for scripts. */
  readonly name: string
  /** Rejects only where it could not be checked at all. */
  run(signal: AbortSignal): Promise<CheckFinding | readonly CheckFinding[]>
}

/** A finding as it is told. */
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
