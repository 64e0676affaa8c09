import * as z from 'zod'
import { inboxView } from '../inbox/schema.ts'
import { adminRoute, answered, publicRoute, type Route, userRoute } from '../router.ts'
import { searchQuery, searchResult } from '../tools/schema.ts'
import * as figures from './schema.ts'

/** The gateway as a whole: its state, statistics and events, and the description of this API. */
export const gatewayRoutes: readonly Route[] = [
  userRoute(
    'GET',
    'events',
    'Server-sent events: overview, calls, servers, approvals, reload, inbox; starts with one of each',
    {
      stream: true,
      run({ user, caller, response }, { events, watch }) {
        events.open(caller, response)
        watch(user, response)
        return answered
      },
    },
  ),
  publicRoute('GET', 'openapi.json', 'This document', {
    answer: z.record(z.string(), z.unknown()),
    run: (_, { document }) => document(),
  }),
  userRoute('GET', 'overview', 'Summary of the gateway', {
    answer: figures.overview,
    run: ({ caller }, { admin }) => admin.overview(caller),
  }),
  userRoute('GET', 'series', 'Statistics over time', {
    query: figures.seriesQuery,
    answer: figures.series,
    run: ({ caller, query }, { admin }) => admin.series(caller, query),
  }),
  userRoute('GET', 'stats', 'Statistics by agent, server, operation or tool', {
    query: figures.statsQuery,
    answer: figures.stats,
    run: ({ caller, query }, { admin }) => admin.stats(caller, query),
  }),
]

export const searchRoutes: readonly Route[] = [
  userRoute('GET', 'search', 'Finds servers, tools, agents and recent calls by name or id', {
    query: searchQuery,
    answer: searchResult,
    run: ({ caller, query }, { admin }) => admin.search(caller, query.q),
  }),
]

export const inboxRoutes: readonly Route[] = [
  adminRoute('GET', 'inbox', 'Everything that needs a person, each item with its actions', {
    answer: inboxView,
    run: (_, { admin }) => admin.inbox(),
  }),
  adminRoute('POST', 'inbox/{id}/dismiss', 'Hides an item until it changes', {
    answer: inboxView,
    run: ({ caller, target }, { admin }) => admin.dismissItem(caller, target),
  }),
]
