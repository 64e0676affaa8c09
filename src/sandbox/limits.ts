const KiB = 1024
const MiB = 1024 * KiB

/** How much a program may do; what the operator sets (time, memory) is not among these. */
export const defaultLimits = {
  sourceBytes: 256 * KiB,
  /** Time on the processor; waiting for the host is free. */
  cpuMs: 5000,
  logBytes: 64 * KiB,
  valueBytes: 256 * KiB,
  /** Calls of host functions in one run, and how many of them at once. */
  calls: 200,
  callsAtOnce: 8,
  callBytes: 1 * MiB,
  answerBytes: 8 * MiB,
  /** All that one child may say in one run: more is an attack on its host. */
  messages: 20_000,
  messageBytes: 64 * MiB,
  /** Programs that run at once, and that wait for their turn. */
  runs: 4,
  waiting: 64,
  /** How long they wait for a place and for a child. */
  waitMs: 30_000,
  /** What all environments together may remember, and how many there are. */
  rememberedBytes: 128 * MiB,
  environments: 64,
  /** Interpreters of environments that are kept, each a process. */
  interpreters: 4,
  /** An environment is forgotten, and a spare child ended, when it has not been used for this long. */
  idleMs: 10 * 60_000,
  /** A child that has not come up after this time never will. */
  startMs: 10_000,
  /** What does not work here is tried again after this time. */
  againMs: 60_000,
} as const

export type Limits = { readonly [Name in keyof typeof defaultLimits]: number }

/** Those that a child is told, so that an honest program hears of them before they are enforced from outside. */
export const taskLimits = ({ cpuMs, logBytes, valueBytes, calls, callBytes }: Limits) => ({
  cpuMs,
  logBytes,
  valueBytes,
  calls,
  callBytes,
})
