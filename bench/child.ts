import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** Something to measure, in a process of its own so that it does not share the generator's thread. */
export interface Child extends AsyncDisposable {
  readonly url: string
  readonly token?: string
}

/** Starts a program of ours and waits for its first line: a JSON object that says where it listens. */
export async function startChild(file: string, args: readonly string[]): Promise<Child> {
  const path = fileURLToPath(new URL(file, import.meta.url))
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const line = once(createInterface({ input: child.stdout }), 'line')
  const failure = once(child, 'exit').then(([code]) => Promise.reject(new Error(`${file} ended with ${code}`)))
  const [text] = (await Promise.race([line, failure])) as [string]
  failure.catch(() => {})
  const said = JSON.parse(text)
  if (typeof said.url !== 'string') throw new Error(`${file} does not listen: ${text}`)
  return { ...said, [Symbol.asyncDispose]: () => end(child) }
}

async function end(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  if (child.exitCode === null && child.kill('SIGTERM')) await exit
}
