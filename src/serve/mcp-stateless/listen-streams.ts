import type { Access, ListChangeListener } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import type { Clock } from '../../core/clock.ts'
import { settles } from '../../core/deadline.ts'
import type { Kind } from '../../core/entry.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { type Id, notificationBytes, resultBytes } from '../../wire/message.ts'
import { metaKeys } from '../../wire/revisions.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'
import type { Params } from '../inbound-message.ts'
import { createResourceSubscriptions, type SessionSubscriptions } from '../session/session.ts'

export interface ListenSink {
  send(message: Buffer): boolean
  end(answer: Buffer): void
}

/** How long to wait for subscriptions. Slower ones are not acknowledged: clients must not wait for one slow server. */
const followMs = 5_000

const methods: Readonly<Record<List, string>> = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
}

/** The `subscriptions/listen` streams: an acknowledgement, and then notifications tagged with the request's id. */
export function createListenStreams(options: {
  readonly access: Access
  readonly serverInfo: object
  readonly budgets: Pick<Budgets, 'streams' | 'subscriptions'>
  readonly clock: Clock
  readonly log: Log
}) {
  const { access, serverInfo, budgets, clock, log } = options
  const streams = new Set<Stream>()
  let changes: Disposable | undefined

  const changed: ListChangeListener = (kinds, session) => {
    const lists = new Set([...kinds].map((kind) => listOf[kind]))
    for (const stream of streams) {
      if (session === undefined || stream.session === session) for (const list of lists) stream.changed(list)
    }
  }

  const leave = (stream: Stream) => {
    if (!streams.delete(stream)) return
    budgets.streams.give(stream.principal)
    if (streams.size > 0) return
    changes?.[Symbol.dispose]()
    changes = undefined
  }

  return {
    /** Opens a stream. Throws if the request is invalid, and OVERLOADED if there are too many streams. */
    open({ id, params }: { id: Id; params: Params }, caller: Caller, sink: ListenSink): { cancel(): void } {
      const { principal, session } = caller
      const { lists, uris } = readFilter(params)
      const tag = { _meta: { [metaKeys.subscriptionId]: id } }
      const bytesOf = (method: string, more: object = {}) => notificationBytes(method, Json.of({ ...more, ...tag }))
      const news = new Map([...lists].map((list) => [list, bytesOf(methods[list])]))
      const early = new Set<Buffer>()
      /** The resource that each pending notification refers to. */
      const about = new Map<Buffer, string>()
      let acknowledged = false
      let over = false

      const tell = (message: Buffer) => {
        if (acknowledged) sink.send(message)
        else early.add(message)
      }
      const followed = createResourceSubscriptions({
        access,
        caller,
        budget: budgets.subscriptions,
        log,
        tell,
        news(uri) {
          const message = bytesOf('notifications/resources/updated', { uri })
          about.set(message, uri)
          return message
        },
      })
      const stream: Stream = {
        principal,
        session,
        changed(list) {
          const message = news.get(list)
          if (message !== undefined) tell(message)
        },
        cancel() {
          over = true
          leave(stream)
          followed[Symbol.dispose]()
        },
        end() {
          stream.cancel()
          const meta = { [metaKeys.subscriptionId]: id, [metaKeys.serverInfo]: serverInfo }
          sink.end(resultBytes(id, Json.of({ resultType: 'complete', _meta: meta })))
        },
      }

      const acknowledge = (following: readonly string[]) => {
        if (over) return
        const honoured = {
          ...Object.fromEntries([...lists].map((list) => [list, true])),
          ...(following.length > 0 && { resourceSubscriptions: following }),
        }
        sink.send(bytesOf('notifications/subscriptions/acknowledged', { notifications: honoured }))
        acknowledged = true
        for (const message of early) {
          const uri = about.get(message)
          if (uri === undefined || following.includes(uri)) sink.send(message)
        }
        early.clear()
        about.clear()
        // If no subscription was accepted, end the stream at once.
        if (Object.keys(honoured).length === 0) stream.end()
      }

      budgets.streams.claim(principal)
      streams.add(stream)
      changes ??= access.onChange(changed)
      void followAll(followed, uris, clock, log).then(acknowledge)
      return stream
    },
    end(): void {
      for (const stream of [...streams]) stream.end()
    },
  }
}

interface Stream {
  readonly principal: string
  readonly session: string
  /** Stops notifications and ends the stream's resource subscriptions. */
  cancel(): void
  changed(list: List): void
  end(): void
}

/** Subscribes to resources. Returns the URIs whose subscriptions succeeded in time. Never rejects. */
async function followAll(
  followed: SessionSubscriptions,
  uris: readonly string[],
  clock: Clock,
  log: Log,
): Promise<string[]> {
  if (uris.length === 0) return []
  const following = new Set<string>()
  const all = uris.map(async (uri) => {
    try {
      await followed.add(uri)
      following.add(uri)
    } catch (cause) {
      log.debug({ uri, err: cause }, 'cannot subscribe to a resource')
    }
  })
  await settles(Promise.all(all), followMs, clock)
  const honoured = uris.filter((uri) => following.has(uri))
  for (const uri of uris) if (!following.has(uri)) followed.remove(uri)
  return honoured
}

const lists = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const
type List = (typeof lists)[number]

/** The list to announce for each kind. MCP announces changes to templates as changes to resources. */
const listOf: Readonly<Record<Kind, List>> = {
  tool: 'toolsListChanged',
  prompt: 'promptsListChanged',
  resource: 'resourcesListChanged',
  template: 'resourcesListChanged',
}

const maxUris = 1_000

/** Reads what to listen for. Unknown members are ignored; the acknowledgement shows what was accepted. */
function readFilter({ notifications }: Params): {
  readonly lists: ReadonlySet<List>
  readonly uris: readonly string[]
} {
  if (!isRecord(notifications)) throw invalid('"notifications" must be an object that names what to listen for.')
  for (const list of lists) {
    const wanted = notifications[list]
    if (wanted !== undefined && typeof wanted !== 'boolean') throw invalid(`"${list}" must be true or false.`)
  }
  const uris = notifications.resourceSubscriptions ?? []
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string')) {
    throw invalid('"resourceSubscriptions" must be a list of URIs.')
  }
  const different = new Set<string>(uris)
  if (different.size > maxUris) throw invalid(`One stream can subscribe to at most ${maxUris} resources.`)
  return { lists: new Set(lists.filter((list) => notifications[list] === true)), uris: [...different] }
}

const invalid = (message: string) => new ProtocolError(rpcCodes.params, message)
