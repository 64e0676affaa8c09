import { asRecord } from '../lib/is-record.ts'
import { setBounded } from '../lib/memoize.ts'
import type { Served } from './access.ts'
import { type Caller, type Capabilities, callerKey, declaresExtension, uiExtension } from './call.ts'
import type { Definition } from './entry.ts'

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

/** The server whose page each caller read last. Pages call tools by their servers' names, which several may have. */
export class AppPages {
  readonly #servers = new Map<string, string>()

  read(caller: Caller, uri: string, server: string): void {
    if (/^ui:/i.test(uri)) setBounded(this.#servers, callerKey(caller), server, maxPageReaders)
  }

  lastServer(caller: Caller): string | undefined {
    return this.#servers.get(callerKey(caller))
  }
}
