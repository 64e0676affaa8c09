import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { BrowserSetup } from '../../tests/browser/real/setup.ts'
import { connect } from '../../tests/fixtures/clients.ts'

/** Agents at work for a while, most of the time with success, so that there is something to see. */
export async function makeTraffic({ toolway, files, client }: BrowserSetup, forMs: number): Promise<void> {
  const asResearcher: typeof fetch = (url, init) => {
    const headers = new Headers(init?.headers)
    headers.set('toolway-agent', 'researcher')
    return fetch(url, { ...init, headers })
  }
  await using researcher = await connect('v2', { endpoint: toolway, fetch: asResearcher as never })
  const notes = join(files, 'notes.md')
  const work: readonly ((turn: number) => Promise<unknown>)[] = [
    (turn) => client.callTool('everything__get-sum', { a: turn, b: 20 }),
    (turn) => client.callTool('everything__echo', { message: `turn ${turn}` }),
    () => researcher.callTool('filesystem__read_text_file', { path: notes }),
    () => researcher.callTool('filesystem__list_directory', { path: files }),
    (turn) => client.callTool('orders__echo', { message: `order ${turn}` }),
    () => client.callTool('everything__trigger-long-running-operation', { duration: 0.2, steps: 1 }),
    (turn) => researcher.callTool('memory__search_nodes', { query: `topic ${turn % 5}` }),
    (turn) =>
      turn % 4 === 0 ? researcher.callTool('filesystem__write_file', { path: notes, content: '' }) : Promise.resolve(),
    (turn) => (turn % 9 === 0 ? client.callTool('orders__failure') : Promise.resolve()),
  ]
  const end = Date.now() + forMs
  for (let turn = 0; Date.now() < end; turn++) {
    // Busier and calmer, as days are.
    const busy = 2 + Math.round(3 * (1 + Math.sin(turn / 12)))
    const chosen = Array.from({ length: busy }, (_, place) => work[(turn * 3 + place * 2) % work.length])
    // Refusals and failures are part of the picture.
    await Promise.allSettled(chosen.map((one) => one?.(turn)))
    await pause(150)
  }
}
