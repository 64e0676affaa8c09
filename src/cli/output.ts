import { styleText } from 'node:util'
import type { Shell, Stream } from './shell.ts'

type Format = Parameters<typeof styleText>[0]

/** Colours a text if the stream is a terminal and `NO_COLOR` does not forbid it. */
export type Paint = (format: Format, text: string) => string

/** Where a command prints: answers on stdout, everything else on stderr. */
export interface Output {
  /** Whether programs read the answer. */
  readonly json: boolean
  /** How many cells a line may take; nothing is cut where no terminal shows it. */
  readonly width: number
  /** Whether a person is looking at stdout. */
  readonly terminal: boolean
  /** A line of the answer. */
  print(line: string): void
  /** The answer as JSON: on one line for programs, indented for people. */
  value(value: unknown): void
  /** A line beside the answer. */
  note(line: string): void
  readonly paint: Paint
  readonly paintNote: Paint
}

const painter =
  (stream: Stream): Paint =>
  (format, text) =>
    styleText(format, text, { stream })

export function createOutput({ stdout, stderr }: Pick<Shell, 'stdout' | 'stderr'>, json = false): Output {
  const terminal = stdout.isTTY === true
  return {
    json,
    terminal,
    width: terminal ? (stdout.columns ?? 80) : Number.POSITIVE_INFINITY,
    print: (line) => stdout.write(line + '\n'),
    value: (value) => stdout.write(JSON.stringify(value, undefined, terminal ? 2 : undefined) + '\n'),
    note: (line) => stderr.write(line + '\n'),
    paint: painter(stdout),
    paintNote: painter(stderr),
  }
}
