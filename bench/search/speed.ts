import type { Definition } from '../../src/core/entry.ts'
import { catalogOf, type Offer } from './catalog-of.ts'
import { type Times, timed, timesOf } from './times.ts'

export interface Speed {
  readonly tools: number
  readonly targetMs: number
  /** A few words, and a task of three sentences. */
  readonly short: Times
  readonly long: Times
  /** The first question, which reads everything, and one after a server with a hundred tools has changed them all. */
  readonly firstMs: number
  readonly changedMs: number
}

const perServer = 100

/**
 * What a question costs among made-up tools of some sixty words each. As in real definitions, a few words are in more
 * than half of the tools (there: get, name, specified), and most in one of hundreds.
 */
export function speedOf(tools: number): Speed {
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
  const ask = (query: string, times?: number) => timed(() => catalog.view.search(query, { limit: 10 }), times).ms
  const many = (query: () => string) => timesOf(Array.from({ length: 500 }, () => ask(query())))

  catalog.view.list('tool')
  const [firstMs = 0] = ask(word(), 1)
  // The engine compiles while it warms up.
  for (let round = 0; round < 300; round++) ask(words(20).join(' '))
  const short = many(() => words(5).join(' '))
  const long = many(() => [words(20), words(20), words(20)].map((sentence) => sentence.join(' ')).join('. '))
  const changes = Array.from({ length: 20 }, (_, number) => {
    catalog.offer(offerOf(number))
    catalog.view.list('tool')
    return ask(word(), 1)
  })
  return { tools, targetMs: 5, short, long, firstMs, changedMs: timesOf(changes).p50Ms }
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
