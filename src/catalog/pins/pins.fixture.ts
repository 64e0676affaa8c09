import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createManualClock } from '../../../tests/fixtures/clock.ts'
import { entryOf } from '../../core/call.fixture.ts'
import type { Definition, Entry } from '../../core/entry.ts'
import type { Log } from '../../core/log.ts'
import { Pins, type PinsOptions } from './pins.ts'

/** A log that keeps every line with its level. */
function keptLog() {
  const lines: { readonly level: string; readonly facts: Record<string, unknown>; readonly message: string }[] = []
  const at = (level: string) => (facts: object, message: string) =>
    void lines.push({ level, facts: facts as Record<string, unknown>, message })
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { log, lines, warnings: () => lines.filter(({ level }) => level === 'warn') }
}

/** A folder for pins and runs of Toolway that share it. */
export async function pinsPlace() {
  const made = await mkdtempDisposable(join(tmpdir(), 'toolway-pins-'))
  const clock = createManualClock()
  const kept = keptLog()
  const stack = new AsyncDisposableStack()
  return {
    folder: made.path,
    clock,
    ...kept,
    open: async (mode: PinsOptions['mode'] = 'warn'): Promise<Pins> =>
      stack.use(new Pins({ mode, folder: made.path, clock, log: kept.log })),
    async [Symbol.asyncDispose]() {
      await stack.disposeAsync()
      await made[Symbol.asyncDispose]()
    },
  }
}

export const toolEntry = (name: string, definition: Definition = {}, server = 'files'): Entry =>
  entryOf({
    server,
    name,
    definition: { name, description: `Does ${name}.`, inputSchema: { type: 'object' }, ...definition },
  })
