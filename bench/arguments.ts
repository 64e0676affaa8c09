import { parseArgs } from 'node:util'

export interface BenchOptions {
  readonly json: boolean
  readonly only: readonly string[]
  readonly rounds: number
  readonly turnMs: number
  readonly peers: boolean
  /** A folder with programs of other gateways that no registry offers. */
  readonly programs: string | undefined
  /** A report of an earlier run instead of a new one. */
  readonly from: string | undefined
  readonly help: boolean
}

export const usage = `npm run bench -- [options]

  --only NAME     only this scenario; may be repeated
  --rounds N      how often everything takes its turn (7)
  --seconds N     how long a turn is (1)
  --peers         installs other gateways into a temporary folder and measures them beside ours
  --programs DIR  where to look for mcp-proxy (TBXark's), agentgateway and nginx before PATH
  --json          the report as JSON, raw turns included
  --from FILE     shows what --json printed earlier, and measures nothing
`

/** Reads the command line; throws a sentence about what it does not understand. */
export function readArguments(argv: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      json: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string', default: '7' },
      seconds: { type: 'string', default: '1' },
      peers: { type: 'boolean', default: false },
      programs: { type: 'string' },
      from: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  return {
    json: values.json,
    only: values.only,
    rounds: between('--rounds', values.rounds, 3, 100),
    turnMs: between('--seconds', values.seconds, 0.2, 30) * 1000,
    peers: values.peers,
    programs: values.programs,
    from: values.from,
    help: values.help,
  }
}

function between(name: string, given: string, least: number, most: number): number {
  const value = Number(given)
  if (value >= least && value <= most) return value
  throw new Error(`${name} is a number from ${least} to ${most}, not ${given}.`)
}
