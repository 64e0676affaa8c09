import type { CallerIdentity, Capabilities } from './call.ts'
import type { Entry, Kind } from './entry.ts'
import type { SourceStatus } from './source-status.ts'

export const metaSource = 'toolway'

/** The sources that run in the gateway. No server can have such a name. */
export const builtInSources: readonly string[] = ['native', metaSource, 'sink']

/** The source of skills in folders. If folders are configured, no server can have this name. */
export const skillsSource = 'skills'

/** A provider of entries: an MCP server, the native tools or the meta-tools. The catalog treats all of them alike. */
export interface Source extends AsyncDisposable {
  readonly name: string
  readonly origin: 'native' | 'forwarded'
  /** In a name conflict, the source with the higher priority gets the name. */
  readonly priority: number
  /** The entries known so far. Never waits. */
  entries(): readonly Entry[]
  status(): SourceStatus
  readonly timeoutMs?: number
  /** Resolves when the entries are known or have failed to load. Never rejects. */
  ready(): Promise<void>
  /** Called when a call waits for the source: it then starts before others. */
  expedite?(): void
  /** How long the source allows caching its list of this kind, if it says so. */
  listTtlMs?(kind: Kind): number | undefined
  /** The kinds of entries that the source failed to list completely. */
  incomplete?(): readonly Kind[]
  /** False if the source is known to have no resources, listed or not. */
  mayHaveResources?(): boolean
  /** Lists the entries again. Never rejects; `status` shows the result. */
  refresh(): Promise<void>
  /** Lists the entries again for a new conversation, if it is configured to; never rejects. */
  renew?(): Promise<void> | undefined
  /**
   * Lists the entries again because a call uses an unknown name, unless another such call has just caused that. With
   * `wake`, also if the source is idle. Never rejects.
   */
  relist?(wake?: 'wake'): Promise<void>
  onChange(listener: () => void): Disposable
  /**
   * The source as clients with these capabilities see it; with the common listing until theirs is known. With a caller,
   * as that caller sees it.
   */
  seenBy?(capabilities: Capabilities, caller?: CallerIdentity): Source
  /** Whether the source lists something else for this caller than for others with the same capabilities. */
  hasListsFor?(caller: CallerIdentity): boolean
  /** Calls the listener when the lists that only one caller sees have changed, appeared or ended. */
  onCallerChange?(listener: CallerChangeListener): Disposable
}

export type CallerChangeListener = (caller: CallerIdentity) => void
