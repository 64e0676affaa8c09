import { marksFolder } from '../audit/write/head.ts'
import { type ApprovalsService, createApprovalsAdmin } from './approvals/approvals.ts'
import {
  AuditQueries,
  type AuditService,
  brokenChain,
  ChainVerification,
  createAuditAdmin,
  uncleanEnd,
} from './audit/audit.ts'
import { type CallsService, createCallsAdmin } from './calls/calls.ts'
import { type ConfigService, createConfigAdmin } from './config/config.ts'
import { type ConfigEditService, ConfigEdits, createConfigEditAdmin } from './config/config-edit.ts'
import type { AdminContext } from './context.ts'
import type { CallView } from './contract.ts'
import { createInboxAdmin, type InboxService } from './inbox/inbox-service.ts'
import { createKeysAdmin, type KeysService } from './keys/keys.ts'
import { createFigures } from './overview/figures.ts'
import { type OverviewService, overviewFor } from './overview/overview.ts'
import { createPinsAdmin, type PinsService } from './pins/pins.ts'
import { createPlayground, PlaygroundQuestions, type PlaygroundService } from './playground/playground.ts'
import { createPolicyAdmin, type PolicyService } from './policy/policy.ts'
import { createServersAdmin, type ServersService } from './servers/servers.ts'
import { createSearch, createToolsAdmin, type SearchService, type ToolsService } from './tools/tools.ts'

/**
 * The admin API's operations. Methods that take a caller show admins everything, and other callers only what their
 * agent may see. Methods without a caller are for admins only, which the routes enforce.
 */
export interface AdminService
  extends ApprovalsService,
    AuditService,
    CallsService,
    ConfigService,
    ConfigEditService,
    InboxService,
    KeysService,
    OverviewService,
    PinsService,
    PlaygroundService,
    PolicyService,
    SearchService,
    ServersService,
    ToolsService {
  onCalls(listener: (calls: readonly CallView[]) => void): Disposable
}

/** Puts the operations together. `close` ends what runs for them. */
export function createAdmin(context: AdminContext): { readonly admin: AdminService; close(): Promise<void> } {
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
    overview: (caller) => overviewFor(caller, context, figures),
    series: figures.series,
    stats: figures.stats,
    ...createSearch(context, figures.callsOf),
    ...createServersAdmin(context, figures),
    ...createToolsAdmin(context, figures),
    ...createPinsAdmin(context),
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
  } satisfies AdminService
  return { admin, close: () => open.disposeAsync() }
}
