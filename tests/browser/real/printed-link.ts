import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { compiled, toolwayWords } from '../../fixtures/programs.ts'

export interface Served extends AsyncDisposable {
  /** The dashboard link as printed in the terminal. */
  readonly link: string
}

/** Runs `toolway serve` without a configuration and reads its output. */
export async function servedToPeople(): Promise<Served> {
  await using open = new AsyncDisposableStack()
  const { path } = open.use(await temporaryFolder())
  const { PATH } = process.env
  const child = spawn(process.execPath, [...toolwayWords, 'serve', '--port', '0'], {
    cwd: path,
    env: { PATH, HOME: path, ...compiled },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  open.defer(async () => {
    if (child.exitCode !== null) return
    const exit = once(child, 'exit')
    child.kill()
    await exit
  })
  for await (const line of createInterface({ input: child.stderr })) {
    const [, link] = /^ *Dashboard +(\S+)/.exec(stripVTControlCharacters(line)) ?? []
    if (link === undefined) continue
    // Drain the rest, so that the pipe does not fill up.
    child.stderr.resume()
    const running = open.move()
    return { link, [Symbol.asyncDispose]: () => running.disposeAsync() }
  }
  throw new Error('toolway serve printed no link to the dashboard')
}
