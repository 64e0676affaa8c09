/** How something is: fine, worth a look, or in the way. */
export type Status = 'ok' | 'warning' | 'problem'

/** What a check found. */
export interface Finding {
  readonly status: Status
  /** A sentence without its full stop. */
  readonly message: string
  /** What to do about it: a command or a line of configuration to copy, wherever there is one. */
  readonly remedy?: string
  /** Lines that help to understand it. */
  readonly details?: readonly string[]
}

/** One thing to look at. */
export interface Check {
  /** `port`, `server.memory`: for scripts. */
  readonly name: string
  /** Rejects only where it could not be checked at all. */
  run(signal: AbortSignal): Promise<Finding | readonly Finding[]>
}

/** A finding as it is told. */
export interface Checked extends Finding {
  readonly name: string
  readonly ms: number
}

type More = Pick<Finding, 'details'>

export const ok = (message: string, more: Omit<Finding, 'status' | 'message'> = {}): Finding => ({
  status: 'ok',
  message,
  ...more,
})

export const warning = (message: string, remedy?: string, more: More = {}): Finding => ({
  status: 'warning',
  message,
  ...(remedy !== undefined && { remedy }),
  ...more,
})

export const problem = (message: string, remedy: string, more: More = {}): Finding => ({
  status: 'problem',
  message,
  remedy,
  ...more,
})
