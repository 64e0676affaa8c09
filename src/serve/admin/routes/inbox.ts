import { adminRoute, type Route } from '../router.ts'
import { inboxView } from '../schemas/inbox.ts'

/** What needs a person. */
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
