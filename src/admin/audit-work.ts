import type { AuditPage, CallDetail } from '../serve/admin/contract.ts'
import type { VerifyReport } from '../telemetry/audit/verify.ts'
import type { AuditQuery } from '../telemetry/audit-search/search.ts'

/** What can be asked about the audit log, and how each of it is answered. */
export interface AuditWork {
  query: { readonly asked: AuditQuery & { readonly limit: number }; readonly answer: AuditPage }
  records: { readonly asked: { readonly call: string }; readonly answer: CallDetail['audit'] }
  verify: {
    readonly asked: { readonly key: string; readonly marks: string | undefined }
    readonly answer: Pick<VerifyReport, 'ok' | 'records' | 'problems' | 'problemCount'>
  }
}

export type AuditTask = keyof AuditWork

/** A question to the worker; its answer has the same id. */
export interface AuditQuestion<Task extends AuditTask = AuditTask> {
  readonly id: number
  readonly folder: string
  readonly task: Task
  readonly asked: AuditWork[Task]['asked']
}

export type AuditAnswer =
  | { readonly id: number; readonly answer: AuditWork[AuditTask]['answer'] }
  | { readonly id: number; readonly error: { readonly code?: string; readonly message: string } }
