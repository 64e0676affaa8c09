import { adminRoute, type Route } from '../router.ts'
import * as calls from '../schemas/calls.ts'

/** The audit log. */
export const auditRoutes: readonly Route[] = [
  adminRoute('GET', 'audit', 'Operations in the audit log, newest first', {
    query: calls.auditListQuery,
    answer: calls.auditPage,
    run: ({ query }, { admin }) => admin.audit(query),
  }),
  adminRoute('GET', 'audit/chain', 'Whether the audit log is unchanged, as of the last check', {
    answer: calls.chainView,
    run: (_, { admin }) => admin.chain(),
  }),
  adminRoute(
    'POST',
    'audit/chain/verify',
    'Starts a check of the whole audit log; GET audit/chain returns the outcome',
    {
      answer: calls.chainView,
      run: (_, { admin }) => admin.verifyChain(),
    },
  ),
]
