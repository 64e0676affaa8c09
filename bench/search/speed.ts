import type { Definition } from '../../src/core/entry.ts'
import { catalogOf, type Offer } from './catalog-of.ts'
import { type Times, timed, timesOf } from './times.ts'

export interface Speed {
  readonly tools: number
  readonly targetMs: number
  /** A few words, and a task of three sentences. */
  readonly short: Times
  readonly long: Times
  /** The first question, which reads everything, and the longest time in which nothing else could run meanwhile. */
  readonly firstMs: number
  readonly firstBlockMs: number
  /** A question after a server with a hundred tools has changed them all. */
  readonly changedMs: number
}

const perServer = 100

/**
 * What a question costs among made-up tools of some sixty words each. As in real definitions, a few words are in more
 * than half of the tools (there: get, name, specified), and most in one of hundreds.
 */
export async function speedOf(tools: number): Promise<Speed> {
  const random = randomFrom(7)
  const word = () => wordOf(Math.floor(8 * 2_500 ** random() - 8))
  const words = (count: number) => Array.from({ length: count }, word)
  const toolOf = (at: number): Definition => ({
    name: `${words(3).join('_')}_${at}`,
    description: words(15).join(' '),
    inputSchema: {
      type: 'object',
      properties: Object.fromEntries(
        words(5).map((name) => [name, { type: 'string', description: words(8).join(' ') }]),
      ),
    },
  })
  const offerOf = (number: number): Offer => ({
    server: `server${number}`,
    tools: Array.from({ length: perServer }, (_, at) => toolOf(at)),
  })
  using catalog = catalogOf(Array.from({ length: Math.ceil(tools / perServer) }, (_, number) => offerOf(number)))
  const ask = async (query: string, times?: number) =>
    (await timed(() => catalog.view.search(query, { limit: 10 }), times)).ms
  const many = async (query: () => string) => {
    const spent: (readonly number[])[] = []
    for (let count = 0; count < 500; count++) spent.push(await ask(query()))
    return timesOf(spent)
  }

  catalog.view.list('tool')
  const blocks = longestBlock()
  const [firstMs = 0] = await ask(word(), 1)
  const firstBlockMs = await blocks.end()
  // The engine compiles while it warms up.
  for (let round = 0; round < 300; round++) await ask(words(20).join(' '))
  const short = await many(() => words(5).join(' '))
  const long = await many(() => [words(20), words(20), words(20)].map((sentence) => sentence.join(' ')).join('. '))
  const changes: (readonly number[])[] = []
  for (let number = 0; number < 20; number++) {
    catalog.offer(offerOf(number))
    catalog.view.list('tool')
    changes.push(await ask(word(), 1))
  }
  return { tools, targetMs: 5, short, long, firstMs, firstBlockMs, changedMs: timesOf(changes).p50Ms }
}

/** Measures the longest work between two turns of the event loop, in CPU time, so that other processes do not count. */
function longestBlock() {
  const used = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  let longest = 0
  let last = used()
  let running = true
  const turn = () => {
    longest = Math.max(longest, used() - last)
    last = used()
    if (running) setImmediate(turn)
  }
  setImmediate(turn)
  return {
    async end(): Promise<number> {
      await new Promise((resolve) => setImmediate(resolve))
      running = false
      return longest
    },
  }
}

/** A word without an ending that a stem would lose; the lower its number, the more often it is used. */
const wordOf = (number: number) => `w${number.toString(36)}q`

/** The same numbers in every run. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
