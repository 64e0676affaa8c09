import { Catalogs } from '../../src/catalog/catalog.ts'
import { callerOf, decideBy, fakeSource, namingOf } from '../../src/catalog/source.fixture.ts'
import type { View } from '../../src/core/access.ts'
import { silentLog } from '../../src/core/log.ts'
import { createManualClock } from '../../tests/fixtures/clock.ts'
import { answerTo, type Example } from './example.ts'

/** The example of an unknown name, in a catalog of a few tools. */
export async function missing(call: string, look: (view: View) => Promise<unknown>): Promise<Example> {
  using catalog = new Catalogs({
    sources: [
      fakeSource('filesystem', { tools: ['read_text_file', 'write_file', 'list_directory'] }),
      fakeSource('github', { tools: ['search_issues', 'create_issue'] }),
    ],
    naming: namingOf(),
    listDeadlineMs: 2_000,
    rules: { decide: decideBy(() => true), closed: () => undefined, exposure: () => 'both' },
    clock: createManualClock(),
    log: silentLog,
  })
  const thrown = await look(catalog.view(callerOf())).catch((error: unknown) => error)
  return { call, answer: answerTo(thrown) }
}
