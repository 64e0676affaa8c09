import type { Capabilities } from '../core/capabilities.ts'
import type { Connection } from './connection.ts'

/** What a server said about itself when the line was opened. */
export interface Introduction {
  readonly era: 'legacy' | 'modern'
  readonly protocolVersion: string
  readonly serverInfo: Readonly<Record<string, unknown>>
  readonly capabilities: Capabilities
  readonly instructions?: string
}

/** How we present ourselves to servers. */
export interface Identity {
  readonly name: string
  readonly version: string
}

/** A connection on which both sides know each other. */
export interface OpenLine {
  readonly connection: Connection
  readonly introduction: Introduction
  readonly identity: Identity
  /** Whose credential it goes by, where each has its own. */
  readonly principal?: string
}

export const asObject = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
