import type { Capabilities } from './call.ts'
import type { Entry } from './entry.ts'
import type { SourceStatus } from './source-status.ts'

/** Where entries come from: an MCP server, the native tools, the meta-tools. The catalog never asks which. */
export interface Source extends AsyncDisposable {
  readonly name: string
  readonly origin: 'native' | 'forwarded'
  /** Higher wins a name conflict. */
  readonly priority: number
  /** What is known now; never waits. */
  entries(): readonly Entry[]
  status(): SourceStatus
  /** How long a call to it may take, unless the call or the entry says otherwise. */
  readonly timeoutMs?: number
  /** Settles when the entries are known, or it is clear that they cannot be had. Never rejects. */
  ready(): Promise<void>
  /** Asks the source again what it offers. Never rejects; `status` tells how it went. */
  refresh(): Promise<void>
  onChange(listener: () => void): Disposable
  /** The source as clients with these capabilities see it, where that makes a difference; until that is known, as all do. */
  seenBy?(capabilities: Capabilities): Source
}
