import { hash } from 'node:crypto'
import { hourMs } from '../lib/duration.ts'
import { asRecord } from '../lib/is-record.ts'
import { setBounded } from '../lib/memoize.ts'
import type { Served } from './access.ts'
import { type Caller, type Capabilities, callerKey, declaresExtension, uiExtension } from './call.ts'
import type { Definition } from './entry.ts'
import type { TtlStore } from './stores.ts'

/*
 * MCP Apps: a tool may name a page (`ui://…`) that the client's host shows, and that calls tools of the same server.
 */

/** Whether a client shows the pages of apps. Such a client keeps the tools that are meant for pages from its model. */
export const showsApps = (capabilities: Capabilities): boolean => declaresExtension(capabilities, uiExtension)

/** The URI of the tool's page, as its server spells it; also in the spelling of earlier drafts. */
export function pageOf({ _meta }: Definition): string | undefined {
  if (_meta === undefined) return undefined
  const uri = asRecord(_meta.ui).resourceUri ?? _meta['ui/resourceUri']
  return typeof uri === 'string' ? uri : undefined
}

/** Whether only pages may call the tool. Such a tool is never offered to models. */
export function isAppOnly({ _meta }: Definition): boolean {
  if (_meta === undefined) return false
  const { visibility } = asRecord(_meta.ui)
  return Array.isArray(visibility) && !visibility.includes('model')
}

/** The tools that models may be offered. */
export const toolsForModels = <T extends Pick<Served, 'entry'>>(tools: readonly T[]): readonly T[] =>
  tools.filter(({ entry }) => !isAppOnly(entry.definition))

const maxPageReaders = 10_000

/** How many callers' last pages a shared store keeps. Their number is fixed, so callers cannot fill the store. */
const sharedSlots = 65_536

/** How long a shared store keeps a last page after its last use. */
const lastPageMs = 24 * hourMs

/**
 * The server whose page each caller read last. Pages call tools by their servers' names, which several may have. Processes
 * that share a store all know it: a client without sessions may read a page from one and call a tool at another.
 */
export class AppPages {
  readonly #servers = new Map<string, string>()
  readonly #shared: TtlStore | undefined

  constructor(shared?: TtlStore) {
    this.#shared = shared
  }

  async read(caller: Caller, uri: string, server: string): Promise<void> {
    if (!/^ui:/i.test(uri)) return
    if (!this.#shared) return setBounded(this.#servers, callerKey(caller), server, maxPageReaders)
    const { slot, digest } = slotOf(caller)
    await this.#shared.set(slot, `${digest}${server}`, lastPageMs)
  }

  async lastServer(caller: Caller): Promise<string | undefined> {
    if (!this.#shared) return this.#servers.get(callerKey(caller))
    const { slot, digest } = slotOf(caller)
    const text = await this.#shared.get(slot, lastPageMs)
    return text?.startsWith(digest) ? text.slice(digest.length) : undefined
  }
}

/** The digest tells callers with the same slot apart. */
function slotOf(caller: Caller): { readonly slot: string; readonly digest: string } {
  const digest = hash('sha256', callerKey(caller))
  return { slot: `page:${Number.parseInt(digest.slice(0, 8), 16) % sharedSlots}`, digest }
}
