import * as z from 'zod'
import { answered, publicRoute, type Route, userRoute } from '../router.ts'
import * as calls from '../schemas/calls.ts'
import * as figures from '../schemas/figures.ts'

/** The gateway as a whole: its state, statistics and events, and the description of this API. */
export const gatewayRoutes: readonly Route[] = [
  userRoute('GET', 'events', 'Server-sent events: overview, calls, servers, reload; starts with one of each', {
    stream: true,
    run({ user, caller, response }, { events, watch }) {
      events.open(caller, response)
      watch(user, response)
      return answered
    },
  }),
  publicRoute('GET', 'openapi.json', 'This document', {
    answer: z.record(z.string(), z.unknown()),
    run: (_, { document }) => document(),
  }),
  userRoute('GET', 'overview', 'Summary of the gateway', {
    answer: figures.overview,
    run: ({ caller }, { admin }) => admin.overview(caller),
  }),
  userRoute('GET', 'series', 'Statistics over time', {
    query: calls.seriesQuery,
    answer: figures.series,
    run: ({ caller, query }, { admin }) => admin.series(caller, query),
  }),
  userRoute('GET', 'stats', 'Statistics by agent, server, operation or tool', {
    query: z.strictObject({ by: figures.statsBy.describe('What to group by.') }),
    answer: figures.stats,
    run: ({ caller, query }, { admin }) => admin.stats(caller, query.by),
  }),
]
