import type { Caller } from '../../core/call.ts'
import { fuzzyScore } from '../../lib/similar-text.ts'
import type { AdminContext } from '../context.ts'
import type { SearchHit, SearchResult } from '../contract.ts'
import { agentsOf } from '../policy/agents.ts'
import { type Route, userRoute } from '../router.ts'
import { searchQuery, searchResult } from './schema.ts'
import { visibleServers, visibleTools } from './visibility.ts'

const maxHits = 20
/** Shorter texts occur in the ids of too many calls. */
const minIdLength = 4

export type SearchService = ReturnType<typeof createSearch>

/** Searches servers, tools, agents and recent calls that the caller may see. */
export function createSearch({ current, calls }: AdminContext, mayList: CallsVisibleTo) {
  return {
    search(caller: Caller, text: string): SearchResult {
      const generation = current()
      const ranked: { readonly hit: SearchHit; readonly score: number }[] = []
      const offer = (kind: SearchHit['kind'], name: string, detail: string, among = name) => {
        const score = fuzzyScore(text, among)
        if (score > 0) ranked.push({ hit: { kind, name, detail: detail.slice(0, 200) }, score })
      }
      for (const { name, status } of visibleServers(caller, generation)) offer('server', name, status.description)
      for (const { name, entry } of visibleTools(caller, generation))
        offer('tool', name, entry.definition.description ?? '')
      for (const agent of caller.admin ? agentsOf(generation) : [caller.agent]) offer('agent', agent, '')
      const wanted = text.trim().toLowerCase()
      if (wanted.length >= minIdLength) {
        for (const { id, server, name } of calls.list(mayList(caller), Number.MAX_SAFE_INTEGER))
          if (id.toLowerCase().includes(wanted)) offer('call', id, `${server}.${name}`)
      }
      const hits = ranked.sort((a, b) => b.score - a.score).slice(0, maxHits)
      return { hits: hits.map(({ hit }) => hit) }
    },
  }
}

type CallsVisibleTo = (caller: Caller) => { readonly agent?: string }

export const searchRoutes = (admin: SearchService): readonly Route[] => [
  userRoute('GET', 'search', 'Finds servers, tools, agents and recent calls by name or id', {
    query: searchQuery,
    answer: searchResult,
    run: ({ caller, query }) => admin.search(caller, query.q),
  }),
]
