import type { Capabilities } from './call.ts'
import type { Entry } from './entry.ts'
import type { SourceStatus } from './source-status.ts'

/** A provider of entries: an MCP server, the native tools, the meta-tools. The catalog does not distinguish them. */
export interface Source extends AsyncDisposable {
  readonly name: string
  readonly origin: 'native' | 'forwarded'
  /** Higher wins a name conflict. */
  readonly priority: number
  /** Never waits. */
  entries(): readonly Entry[]
  status(): SourceStatus
  readonly timeoutMs?: number
  /** Resolves when the entries are known or have failed to load. Never rejects. */
  ready(): Promise<void>
  /** Lists the entries again. Never rejects; `status` shows the result. */
  refresh(): Promise<void>
  onChange(listener: () => void): Disposable
  /** The source as clients with these capabilities see it, if it differs; until that is known, the common listing. */
  seenBy?(capabilities: Capabilities): Source
}
