import type { Generator } from './load/generator-process.ts'
import type { Arm, RoundsOptions, Series } from './measure/rounds.ts'
import type { Row } from './measure/verdict.ts'
import type { Peer } from './peers/peer.ts'

/** One thing to be measured; it gives as many rows as it has something to say. */
export interface Scenario {
  readonly name: string
  readonly title: string
  run(bench: Bench): Promise<Row[]>
}

/** What scenarios share. */
export interface Bench {
  readonly generator: Generator
  readonly rounds: number
  readonly turnMs: number
  readonly peers: readonly Peer[]
  /** An empty folder outside of the repository. */
  folder(name: string): Promise<string>
  /** Rounds as `--rounds` and `--seconds` want them, kept for the report. */
  series(
    scenario: string,
    arms: readonly Arm[],
    options: Pick<RoundsOptions, 'inFlight'> & Partial<RoundsOptions>,
  ): Promise<Series>
  note(line: string): void
}
