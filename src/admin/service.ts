import { marksFolder } from '../audit/write/head.ts'
import { createApprovalsAdmin } from './approvals/approvals.ts'
import { AuditQueries, brokenChain, ChainVerification, createAuditAdmin, uncleanEnd } from './audit/audit.ts'
import { createCallsAdmin } from './calls/calls.ts'
import { createConfigAdmin } from './config/config.ts'
import { ConfigEdits, createConfigEditAdmin } from './config/config-edit.ts'
import type { AdminContext } from './context.ts'
import { createEndpointsAdmin } from './endpoints/endpoints.ts'
import { createInboxAdmin } from './inbox/inbox-service.ts'
import { createKeysAdmin } from './keys/keys.ts'
import { createFigures } from './overview/figures.ts'
import { createOverviewAdmin } from './overview/overview.ts'
import { createPinsAdmin } from './pins/pins.ts'
import { createPlayground, PlaygroundQuestions } from './playground/playground.ts'
import { createPolicyAdmin } from './policy/policy.ts'
import { createServersAdmin } from './servers/servers.ts'
import { createSkillsAdmin } from './skills/skills.ts'
import { createSearch, createToolsAdmin } from './tools/tools.ts'

/**
 * The admin API's operations. Methods that take a caller show admins everything, and other callers only what their
 * agent may see. Methods without a caller are for admins only, which the routes enforce.
 */
export type AdminService = ReturnType<typeof createAdmin>['admin']

/** Puts the operations together. `close` ends what runs for them. */
export function createAdmin(context: AdminContext) {
  const { audit, archive, calls, current, clock, inbox } = context
  const { stores, audit: auditConfig } = current().loaded.config
  const open = new AsyncDisposableStack()
  const figures = createFigures(context)
  const auditQueries = open.use(
    new AuditQueries({
      // The log stays in the folder in which it was opened, even if a reload changes the setting.
      folder: auditConfig.path,
      marks: marksFolder(stores.path, auditConfig.path),
      flushed: () => audit.flushed(),
      archive,
      clock,
    }),
  )
  const edits = open.use(new ConfigEdits(context))
  const questions = open.use(new PlaygroundQuestions(context))
  const verification = new ChainVerification(auditQueries, context)
  // The item stays while the log is verified again: an item that returns is reported once more.
  open.use(inbox.add({ items: () => brokenChain(verification.verified()) }))
  open.use(inbox.add(uncleanEnd(context, auditQueries)))
  const admin = {
    ...createOverviewAdmin(context, figures),
    ...createEndpointsAdmin(context),
    ...createSearch(context),
    ...createServersAdmin(context, figures),
    ...createToolsAdmin(context, figures),
    ...createPinsAdmin(context),
    ...createSkillsAdmin(context),
    ...createInboxAdmin(context),
    ...createCallsAdmin(context, auditQueries),
    ...createApprovalsAdmin(context),
    ...createPlayground(context, questions),
    ...createAuditAdmin(auditQueries, verification),
    ...createKeysAdmin(context),
    ...createConfigAdmin(context),
    ...createConfigEditAdmin(context, edits),
    ...createPolicyAdmin(context, edits, auditQueries),
    onCalls: calls.subscribe,
  }
  return { admin, close: () => open.disposeAsync() }
}
