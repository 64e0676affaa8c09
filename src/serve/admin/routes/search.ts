import { type Route, userRoute } from '../router.ts'
import { searchQuery, searchResult } from '../schemas/search.ts'

/** Finding anything by its name. */
export const searchRoutes: readonly Route[] = [
  userRoute('GET', 'search', 'Finds servers, tools, agents and recent calls by name or id', {
    query: searchQuery,
    answer: searchResult,
    run: ({ caller, query }, { admin }) => admin.search(caller, query.q),
  }),
]
