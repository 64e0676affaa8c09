import type { Denial, Permission } from '../core/decision.ts'
import type { ErrorCode } from '../core/errors.ts'

/** What audit calls the reason of a denial (F11): one word per cause, never a sentence. */
export type AuditReason =
  | 'server_not_allowed'
  | 'tool_not_allowed'
  | 'tool_blocked'
  | 'auth_required'
  | 'agent_not_in_rules'

/** A denial that also has a word for audit. */
export interface RuledDenial extends Denial {
  readonly auditReason?: AuditReason
}

/** A decision that always names its rule. */
export type Verdict = Permission | RuledDenial

/** What the rules are asked: may this agent use that thing? */
export interface Question {
  readonly agent: string
  readonly server: string
  /** The entry's own name: of a tool or prompt, or a URI. */
  readonly name: string
  /** Rules for tools are about tools alone; everything else goes by the rules for servers. */
  readonly isTool: boolean
  readonly authenticated: boolean
}

/** A denial before it is put in words: one object per rule, shared by everything that it denies. */
export interface Refusal {
  readonly allowed: false
  readonly code: ErrorCode
  readonly rule: string
  readonly auditReason: AuditReason
  readonly sentence: (question: Question, rule: string) => string
}

export type Ruling = Permission | Refusal

export type { Permission }

export const permission = (rule: string): Permission => ({ allowed: true, rule })

/** The ruling as an answer to one question. */
export function verdictOf(ruling: Ruling, question: Question): Verdict {
  if (ruling.allowed) return ruling
  const { code, rule, auditReason } = ruling
  return { allowed: false, code, rule, reason: ruling.sentence(question, rule), auditReason }
}

/** Audit's word for a failure that no rule made, such as `server_not_found`. */
export const auditReasonOf = (code: ErrorCode): string => code.toLowerCase()
