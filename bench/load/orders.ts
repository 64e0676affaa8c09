/** What the load generator is told to do, and what it answers. Both cross a process border as JSON. */

/** One prepared request. Where `message` contains the id `firstId`, each request gets an id of its own in its place. */
export interface PreparedRequest {
  readonly head: string
  readonly message: string
  /** The answer must contain this near its beginning. */
  readonly expected: string
  /** The answer must have at least this many bytes. */
  readonly leastBytes?: number
}

/** Where requests go, one after the other over and over. Loopback only. */
export interface Aim {
  readonly port: number
  readonly requests: readonly PreparedRequest[]
}

export type Order =
  | {
      readonly kind: 'run'
      readonly aim: Aim
      readonly inFlight: number
      /** Not counted. */
      readonly warmUpMs: number
      readonly ms: number
      /** Ends as soon as this many were answered. */
      readonly most?: number
      /** Calls a second at most, all connections together. */
      readonly rate?: number
      /** Responses that contain one of these codes are counted as refused, not as failures. */
      readonly tolerated?: readonly string[]
      /** The processes under test: their CPU time is read when counting begins and ends. */
      readonly pids: readonly number[]
    }
  | { readonly kind: 'hold'; readonly aim: Aim; readonly connections: number }
  | { readonly kind: 'release' }

/** What one turn of load has shown. Times are milliseconds. */
export interface Sample {
  readonly calls: number
  readonly ms: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly worst: number
  /** CPU time of the processes under test. */
  readonly cpuMs: number
  /** CPU time of the generator itself. */
  readonly ownCpuMs: number
  /** Responses with a tolerated error code. */
  readonly refused: number
  readonly failures: number
  /** The first one, in words. */
  readonly failure?: string
}

/** Nine digits, so that every id of a run has the same length and is written in place. */
export const firstId = 100_000_000
