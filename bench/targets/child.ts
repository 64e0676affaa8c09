import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

/** A process of ours; disposing of it stops it and waits for its end. */
export interface Started extends AsyncDisposable {
  readonly pid: number
  readonly child: ChildProcess
  /** The last that it said on standard error. */
  said(): string
}

/** A process that has told where it listens. */
export interface Listening extends Started {
  readonly url: string
  readonly token?: string
}

/** Everything that was started and has not ended: it goes with us, whatever ends us. */
const living = new Set<ChildProcess>()
const killAll = () => {
  for (const child of living) kill(child, 'SIGKILL')
}
process.on('exit', killAll)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    killAll()
    process.stderr.write(`stopped by ${signal}\n`)
    process.exit(130)
  })
}

const graceMs = 3000

/** Takes care of a process that was started: known to the clean-up, its errors kept, stopped by its own id. */
export function stopping(child: ChildProcess, name: string, group = false): Started {
  const { pid } = child
  if (pid === undefined) throw new Error(`${name} could not be started`)
  if (group) groups.add(child)
  living.add(child)
  child.once('exit', () => living.delete(child))
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk).slice(-2000)
  })
  return {
    pid,
    child,
    said: () => said.trim(),
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      kill(child, 'SIGTERM')
      const late = setTimeout(() => kill(child, 'SIGKILL'), graceMs)
      await exit
      clearTimeout(late)
      // Whatever of its group has outlived it.
      if (group) kill(child, 'SIGKILL')
    },
  }
}

/** Those that lead a process group of their own: strangers, who may leave their children behind. */
const groups = new WeakSet<ChildProcess>()

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (groups.has(child)) process.kill(-(child.pid as number), signal)
    else child.kill(signal)
  } catch {
    // It is gone already.
  }
}

/** Starts a program that is not ours, in a process group of its own. */
export function startProgram(command: string, args: readonly string[], options: SpawnOptions = {}): Started {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], ...options, detached: true })
  child.on('error', () => {})
  return stopping(child, command, true)
}

/** Starts a program of ours and waits for its first line: a JSON object that says where it listens. */
export async function startChild(
  file: string | URL,
  args: readonly string[],
  { nodeArgs = [], ipc = false }: { nodeArgs?: readonly string[]; ipc?: boolean } = {},
): Promise<Listening> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const stdio = ['ignore', 'pipe', 'pipe', ...(ipc ? ['ipc' as const] : [])] as SpawnOptions['stdio']
  const child = spawn(process.execPath, [...nodeArgs, path, ...args], { stdio: stdio as never })
  const started = stopping(child, String(file))
  const line = once(createInterface({ input: child.stdout as unknown as Readable }), 'line')
  const failure = once(child, 'exit').then(([code]) =>
    Promise.reject(new Error(`${file} ended with ${code}: ${started.said()}`)),
  )
  failure.catch(() => {})
  const [text] = (await Promise.race([line, failure])) as [string]
  const { url, token } = JSON.parse(text)
  if (typeof url !== 'string') throw new Error(`${file} does not listen: ${text}`)
  return { ...started, url, ...(token && { token }) }
}
