import { PassThrough, Readable } from 'node:stream'
import { invocationOf } from './invocation.ts'
import type { Shell } from './kit.ts'
import { run } from './run.ts'

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs one command line in this process, away from the real terminal and environment. */
export async function toolway(words: readonly string[], surroundings: Surroundings = {}): Promise<Outcome> {
  const { shell, stdout, stderr } = recordedShell(surroundings)
  const code = await run(words, shell)
  return { code, stdout: stdout(), stderr: stderr() }
}

/** What surrounds a command, with what it has printed so far. */
export function recordedShell({
  cwd = '/nowhere',
  env = {},
  command = 'toolway',
  program = invocationOf({ env, cwd }).program,
  input = '',
  stdin = Readable.from([input]),
  columns,
  interrupted = new AbortController().signal,
}: Surroundings = {}) {
  const stdout = recorded(columns)
  const stderr = recorded(columns)
  const shell: Shell = { command, program, stdin, stdout: stdout.stream, stderr: stderr.stream, env, cwd, interrupted }
  return { shell, stdout: stdout.text, stderr: stderr.text }
}

export interface Surroundings {
  readonly cwd?: string
  readonly env?: Shell['env']
  readonly command?: string
  readonly program?: readonly string[]
  readonly input?: string
  /** Replaces `input` where a test needs the stream itself. */
  readonly stdin?: Readable
  /** The width of the terminal; without it there is none. */
  readonly columns?: number | undefined
  readonly interrupted?: AbortSignal
}

function recorded(columns: number | undefined) {
  const chunks: Buffer[] = []
  const stream = new PassThrough().on('data', (chunk: Buffer) => chunks.push(chunk))
  return {
    stream: columns === undefined ? stream : Object.assign(stream, { isTTY: true, columns, getColorDepth: () => 4 }),
    text: () => Buffer.concat([...chunks, stream.read() ?? Buffer.alloc(0)]).toString(),
  }
}
