import type { MissingServer, Served, View } from '../../core/access.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { ServerSummary } from '../../core/source-status.ts'
import { didYouMean } from '../../lib/near.ts'

/** The tools of the servers that a caller may use, meta-tools aside; of one server only, if it is named. */
export function toolsBehind(view: View, server?: string): readonly Served[] {
  const names = new Set(server === undefined ? view.servers().map(({ name }) => name) : [server])
  return view.list('tool').filter(({ entry }) => names.has(entry.server))
}

/** Throws where the caller may use no tool of the named server: an empty list would not say why. */
export function refuseClosed(view: View, server: string | undefined): void {
  const refusal = server === undefined ? undefined : view.refusal(server, 'tool')
  if (refusal) throw refusal
}

/** The servers asked for: all, or the one that is named. A name that is none is refused with its near misses. */
export function serversAsked(view: View, server?: string): readonly ServerSummary[] {
  const servers = view.servers()
  if (server === undefined) return servers
  const found = servers.filter(({ name }) => name === server)
  if (found.length === 0) throw serverNotFound(view, server)
  return found
}

/**
 * The servers asked for whose tools are not known, so that a short list does not pass for a complete one. A disabled
 * server counts only where it is named.
 */
export function missingFrom(view: View, server?: string): readonly MissingServer[] {
  if (server === undefined) return view.missing()
  const missing = view.missing().filter((one) => one.server === server)
  if (missing.length > 0) return missing
  const disabled = view.servers().filter(({ name, status }) => name === server && status.health === 'disabled')
  return disabled.map(({ name, status: { health, reason } }) => ({ server: name, status: health, reason }))
}

export function serverNotFound(view: View, server: string): ToolwayError {
  const names = view.servers().map(({ name }) => name)
  const hint = didYouMean(server, names, '; list_servers shows those that you may use.')
  const error = new ToolwayError('SERVER_NOT_FOUND', `There is no server "${server.slice(0, 100)}"${hint}`)
  return error.concealing(view.concealed?.(server))
}
