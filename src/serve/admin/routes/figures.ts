import * as z from 'zod'
import { moment } from '../query.ts'
import { guarded, type Route } from '../route.ts'
import { overview, series, stats, statsBy } from '../schema/figures.ts'

export const figureRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'overview',
    summary: 'The gateway as a whole',
    access: 'guest',
    answer: overview,
    run: ({ caller }, { admin }) => admin.overview(caller),
  }),
  guarded({
    method: 'GET',
    path: 'series',
    summary: 'Figures over time',
    access: 'guest',
    query: z.strictObject({ from: moment('Beginning; an hour before the end otherwise.'), to: moment('End; now.') }),
    answer: series,
    run: ({ caller, query }, { admin }) => admin.series(caller, query),
  }),
  guarded({
    method: 'GET',
    path: 'stats',
    summary: 'Figures by agent, server, operation or tool',
    access: 'guest',
    query: z.strictObject({ by: statsBy.describe('What to count by.') }),
    answer: stats,
    run: ({ caller, query }, { admin }) => admin.stats(caller, query.by),
  }),
]
