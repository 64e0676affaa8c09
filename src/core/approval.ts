/** Who may answer, as configured: `admins`, `client`, `own`, a principal, or the id of an API key. */
export type Approvers = readonly string[]

/** Why a call needs a person's approval, and who may give it. */
export interface ApprovalNeed {
  /** The first rule that requires the approval. */
  readonly rule: string
  /** One list for each rule that requires the approval. A person must be permitted by all of them. */
  readonly by: readonly Approvers[]
}

/** A call that waits for a person's approval (V8). */
export interface PendingApproval extends ApprovalNeed {
  readonly id: string
  readonly call: string
  readonly agent: string
  readonly principal: string
  readonly session: string
  readonly server: string
  readonly tool: string
  /** All arguments as indented JSON, redacted, with hidden characters spelt out. */
  readonly arguments: string
  /** Milliseconds since the epoch. */
  readonly askedAt: number
  readonly until: number
}

export type ApprovalDecision = 'once' | 'session' | 'deny'

export interface ApprovalAnswer {
  readonly decision: ApprovalDecision
  /** The principal of the person who answered; `client` if the caller's own client asked its user. */
  readonly by: string
  /** The person's words, for the model. */
  readonly reason?: string | undefined
}

/** How a call was approved or denied, for its audit record. */
export type ApprovalRecord = Pick<ApprovalAnswer, 'decision' | 'by'>

/** Whether the user of the calling client may answer, through elicitation. */
export const clientMayAnswer = ({ by }: Pick<ApprovalNeed, 'by'>): boolean =>
  by.every((list) => list.includes('client'))

/** Whether anybody but the user of the calling client may answer. */
export const othersMayAnswer = ({ by }: Pick<ApprovalNeed, 'by'>): boolean =>
  by.every((list) => list.some((word) => word !== 'client'))
