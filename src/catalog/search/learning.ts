import { hash } from 'node:crypto'
import type { Served } from '../../core/access.ts'
import { type Call, type Caller, callerKey, ownerKey } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import type { Definition } from '../../core/entry.ts'
import type { Log } from '../../core/log.ts'
import type { Observer } from '../../core/observer.ts'
import { metaSource } from '../../core/source.ts'
import { durationUnits } from '../../lib/duration.ts'
import { memoizeByObject, setBounded } from '../../lib/memoize.ts'
import { definitionHash, pinnedPart } from '../pins/definition.ts'
import type { ScoreSource, SearchQuestion } from './combine-scores.ts'
import { LearnedQueries, type LearnedQuery, learnedWords } from './learned-queries.ts'
import { type LearnedRow, LearningTable, maxOfTool } from './learning-table.ts'
import { toolId } from './search-index.ts'

/** The configuration section `search`. */
export interface LearningSettings {
  readonly learn: boolean
  /** Whose queries count for a caller: those of its agent, or of all. */
  readonly pool: 'agent' | 'all'
  readonly halfLife: number
  readonly examples: Readonly<Record<string, readonly string[]>>
}

interface LearningOptions {
  /** The state folder. */
  readonly folder: string
  /** Removes secrets from a query. */
  redact(text: string): string
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'after'>
  readonly log: Log
}

/** A search whose matches have not been called yet. */
interface OpenSearch {
  readonly query: string
  readonly tools: Set<string>
  readonly until: number
}

/** How long after a search a call of a match counts as its success. */
const searchOpenMs = 10 * durationUnits.m
const maxSearches = 4
const maxSearchers = 1_000
const maxPools = 64
/** How soon queries are written, and how often those of other processes are read. */
const flushMs = 1_000
/** How many tools may have unsaved queries. */
const maxUnsaved = 50
const learnedRereadMs = 5_000
/** A query is forgotten after this many half-lives. */
const maxHalfLives = 5

/** The name of a principal in the table. Only equality matters. */
const principalHash = (principal: string): string => hash('sha256', principal, 'base64url').slice(0, 16)

const definitionId = memoizeByObject((definition: Definition): string =>
  definitionHash(pinnedPart(definition)).slice(0, 16),
)

/** The rows of a pool and the operator's examples as learned queries. */
export const learnedFrom = (rows: readonly LearnedRow[], { examples }: Pick<LearningSettings, 'examples'>) =>
  new LearnedQueries([...rows, ...examplesIn(examples)])

const examplesIn = (examples: LearningSettings['examples']): readonly LearnedQuery[] =>
  Object.entries(examples).flatMap(([tool, queries]) =>
    queries.map((query) => ({ tool, principal: undefined, definition: undefined, words: learnedWords(query), at: 0 })),
  )

/** The expansion of scores for a principal. */
export const expansionOf =
  (queries: LearnedQueries, principal: string, halfLifeMs: number, now: number): ScoreSource =>
  (question: SearchQuestion) => {
    const hashAt = (place: number) => definitionId(question.definitionAt(place))
    return queries.score(question, { principal: principalHash(principal), now, halfLifeMs, definitionHash: hashAt })
  }

/** Learns which tools are called after a search. Outlives a configuration. */
export class SearchLearning implements Disposable {
  readonly #options: LearningOptions
  readonly #searches = new Map<string, readonly OpenSearch[]>()
  #table: LearningTable | undefined
  /** By agent, principal and tool, no more than the table would keep. */
  readonly #unsaved = new Map<string, readonly LearnedRow[]>()
  #timer: Disposable | undefined
  #rows: readonly LearnedRow[] = []
  #readAt = Number.NEGATIVE_INFINITY
  /** The queries of each pool, for these settings and rows. */
  readonly #pools = new Map<string, LearnedQueries>()
  #settings: LearningSettings | undefined

  constructor(options: LearningOptions) {
    this.#options = options
  }

  /** Notes what a search found. */
  searched(caller: Caller, query: string, found: readonly Served[]): void {
    const key = callerKey(caller)
    const until = this.#options.clock.monotonic() + searchOpenMs
    const tools = new Set(found.map(({ entry }) => toolId(entry)))
    const open = [...(this.#searches.get(key) ?? []), { query, tools, until }].slice(-maxSearches)
    this.#searches.delete(key)
    this.#searches.set(key, open)
    const [oldest] = this.#searches.keys()
    if (oldest !== undefined && this.#searches.size > maxSearchers) this.#searches.delete(oldest)
  }

  /** Learns from each call that succeeds. */
  observer(settings: LearningSettings): Observer {
    return {
      ended: ({ call, operation, outcome }) => {
        if (operation !== 'call_tool' || outcome.kind !== 'answered' || call.entry.server === metaSource) return
        if (this.#searches.size > 0) this.#called(call, settings)
      },
    }
  }

  /** What learning adds to a caller's search. */
  expansion({ agent, principal }: Caller, settings: LearningSettings): readonly ScoreSource[] {
    if (settings.learn) this.#read()
    else if (Object.keys(settings.examples).length === 0) return []
    if (settings !== this.#settings) this.#pools.clear()
    this.#settings = settings
    const pool = settings.pool === 'all' ? '' : agent
    const rows = () => (settings.learn ? this.#rows.filter((row) => pool === '' || row.agent === pool) : [])
    const queries = this.#pools.get(pool) ?? learnedFrom(rows(), settings)
    setBounded(this.#pools, pool, queries, maxPools)
    return [expansionOf(queries, principal, settings.halfLife, this.#options.clock.now())]
  }

  [Symbol.dispose](): void {
    this.#flush(this.#settings)
    this.#table?.[Symbol.dispose]()
    this.#table = undefined
  }

  #called({ caller, entry }: Call, settings: LearningSettings): void {
    const { clock, redact } = this.#options
    const id = toolId(entry)
    const open = this.#searches.get(callerKey(caller))
    const search = open?.findLast(({ tools, until }) => tools.has(id) && until > clock.monotonic())
    if (!search) return
    search.tools.delete(id)
    const words = learnedWords(redact(search.query))
    if (words.length === 0) return
    const principal = principalHash(caller.principal)
    const definition = definitionId(entry.definition)
    const key = `${ownerKey(caller)}\n${id}`
    const row = { agent: caller.agent, principal, tool: id, definition, words, at: clock.now() }
    this.#unsaved.set(key, [...(this.#unsaved.get(key) ?? []), row].slice(-maxOfTool))
    this.#settings ??= settings
    if (this.#unsaved.size >= maxUnsaved) this.#flush(settings)
    else this.#timer ??= clock.after(flushMs, () => this.#flush(settings))
  }

  #flush(settings: LearningSettings | undefined): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    const rows = [...this.#unsaved.values()].flat()
    this.#unsaved.clear()
    if (rows.length === 0 || settings === undefined) return
    const now = this.#options.clock.now()
    this.#opened().add(rows, now - maxHalfLives * settings.halfLife)
    this.#readAt = Number.NEGATIVE_INFINITY
  }

  #read(): void {
    const now = this.#options.clock.monotonic()
    if (now - this.#readAt < learnedRereadMs) return
    this.#readAt = now
    const rows = this.#opened().changed()
    if (!rows) return
    this.#rows = rows
    this.#pools.clear()
  }

  #opened(): LearningTable {
    this.#table ??= new LearningTable(this.#options.folder, (trouble) => {
      if (trouble) this.#options.log.warn(trouble, 'cannot store what the tool search has learned')
    })
    return this.#table
  }
}
