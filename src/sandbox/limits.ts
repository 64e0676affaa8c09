const KiB = 1024
const MiB = 1024 * KiB

/** Fixed limits for programs. Only a program's time and memory limits are configurable. */
export const defaultLimits = {
  sourceBytes: 256 * KiB,
  /** CPU time; waiting for the host does not count. */
  cpuMs: 5000,
  logBytes: 64 * KiB,
  valueBytes: 256 * KiB,
  /** Maximum number of host calls per run, and how many of them may run in parallel. */
  calls: 200,
  callsAtOnce: 8,
  callBytes: 1 * MiB,
  answerBytes: 8 * MiB,
  /** Maximum number of messages from one child per run; only an attacker would send more. */
  messages: 20_000,
  messageBytes: 64 * MiB,
  /** How many programs may run, and how many may wait. */
  runs: 4,
  waiting: 64,
  /** Longest wait for a slot and a child. */
  waitMs: 30_000,
  /** Maximum total memory for all environments, and their maximum number. */
  rememberedBytes: 128 * MiB,
  environments: 64,
  /** Maximum number of interpreters that are kept; each is a process. */
  interpreters: 4,
  /** Idle time after which environments and warm children are dropped. */
  idleMs: 10 * 60_000,
  /** Time limit for a child to start. */
  startMs: 10_000,
  /** Interval for trying unavailable tiers again. */
  againMs: 60_000,
} as const

export type Limits = { readonly [Name in keyof typeof defaultLimits]: number }

/** Limits passed to the child, so that programs get a clear error before the host enforces them. */
export const taskLimits = ({ cpuMs, logBytes, valueBytes, calls, callBytes }: Limits) => ({
  cpuMs,
  logBytes,
  valueBytes,
  calls,
  callBytes,
})
