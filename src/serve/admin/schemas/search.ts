import * as z from 'zod'
import { named, type ViewOf } from './figures.ts'

export const searchQuery = z.strictObject({
  q: z.string().min(1).max(200).describe('Words that must all occur; their letters may have others between them.'),
})

const searchHit = named('SearchHit', 'Something with a page of its own.', {
  kind: z.enum(['server', 'tool', 'agent', 'call']),
  name: z.string().describe("The server's, tool's or agent's name, or the call's id."),
  detail: z.string(),
})
export type SearchHit = ViewOf<typeof searchHit>

export const searchResult = named('SearchResult', 'What a search found, best first.', {
  hits: z.array(searchHit).describe('At most 20.'),
})
export type SearchResult = ViewOf<typeof searchResult>
