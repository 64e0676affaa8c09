import { adminRoute, type Route } from '../router.ts'
import * as figures from '../schemas/figures.ts'

/** The configuration. */
export const configRoutes: readonly Route[] = [
  adminRoute('GET', 'config', 'The effective configuration without secrets, and the reload history', {
    answer: figures.configView,
    run: (_, { admin }) => admin.config(),
  }),
  adminRoute('POST', 'config/reload', 'Reloads the configuration; an invalid one is not applied', {
    answer: figures.reloadEvent,
    run: ({ caller }, { admin }) => admin.reload(caller),
  }),
]
