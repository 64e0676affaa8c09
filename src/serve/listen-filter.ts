import type { Kind } from '../core/entry.ts'
import { ProtocolError } from './errors.ts'
import { isObject, type Params } from './inbound.ts'
import { rpc } from './refusal.ts'

/** What a client wants to be told of on a stream of its own. */
export interface ListenFilter {
  readonly lists: ReadonlySet<List>
  /** Each once, as the client spells it. */
  readonly uris: readonly string[]
}

/** A list as the filter names it. */
export type List = 'toolsListChanged' | 'promptsListChanged' | 'resourcesListChanged'

const lists: readonly List[] = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged']

/** To a client, templates are part of the resources. */
export const listOf: Readonly<Record<Kind, List>> = {
  tool: 'toolsListChanged',
  prompt: 'promptsListChanged',
  resource: 'resourcesListChanged',
  template: 'resourcesListChanged',
}

/** More on one stream is a client gone wild. */
const maxUris = 1_000

/** Reads what a client asks for; members that we do not know are not honoured, and the acknowledgement says so. */
export function readFilter({ notifications }: Params): ListenFilter {
  if (!isObject(notifications)) throw invalid('"notifications" must be an object that says what to listen for.')
  for (const list of lists) {
    const wanted = notifications[list]
    if (wanted !== undefined && typeof wanted !== 'boolean') throw invalid(`"${list}" must be true or false.`)
  }
  const uris = notifications.resourceSubscriptions ?? []
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string')) {
    throw invalid('"resourceSubscriptions" must be a list of URIs.')
  }
  const different = new Set<string>(uris)
  if (different.size > maxUris) throw invalid(`No more than ${maxUris} resources can be followed on one stream.`)
  return { lists: new Set(lists.filter((list) => notifications[list] === true)), uris: [...different] }
}

const invalid = (message: string) => new ProtocolError(rpc.params, message)
