import type { ListChangeListener } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { settles } from '../../core/deadline.ts'
import type { Kind } from '../../core/entry.ts'
import type { Budgets } from '../../core/limits/budget.ts'
import { Json } from '../../json/json.ts'
import { isRecord } from '../../lib/is-record.ts'
import { type Id, notificationBytes, resultBytes } from '../../wire/message.ts'
import { metaKeys } from '../../wire/revisions.ts'
import type { ServeContext } from '../context.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'
import type { Params } from '../inbound-message.ts'
import { ResourceSubscriptions } from '../session/session.ts'

export interface ListenSink {
  send(message: Buffer): boolean
  end(answer: Buffer): void
}

/** How long to wait for subscriptions. Slower ones are not acknowledged: clients must not wait for one slow server. */
const followTimeoutMs = 5_000

const changeMethods: Readonly<Record<List, string>> = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
}

interface ListenOptions extends Pick<ServeContext, 'access' | 'clock' | 'log'> {
  readonly serverInfo: object
  readonly budgets: Pick<Budgets, 'streams' | 'subscriptions'>
}

/** The `subscriptions/listen` streams: an acknowledgement, and then notifications tagged with the request's id. */
export class ListenStreams {
  readonly #options: ListenOptions
  readonly #streams = new Set<ListenStream>()
  #changes: Disposable | undefined

  constructor(options: ListenOptions) {
    this.#options = options
  }

  /** Opens a stream. Throws if the request is invalid, and OVERLOADED if there are too many streams. */
  open({ id, params }: { id: Id; params: Params }, caller: Caller, sink: ListenSink): { cancel(): void } {
    const { access, budgets } = this.#options
    const filter = readFilter(params)
    const left = () => this.#leave(stream)
    const stream = new ListenStream({ id, lists: filter.lists, caller, sink, left }, this.#options)
    budgets.streams.claim(caller.principal)
    this.#streams.add(stream)
    this.#changes ??= access.onChange(this.#changed)
    void stream.follow(filter.uris)
    return stream
  }

  end(): void {
    for (const stream of [...this.#streams]) stream.end()
  }

  readonly #changed: ListChangeListener = (kinds, session) => {
    const changed = new Set([...kinds].map((kind) => listOfKind[kind]))
    for (const stream of this.#streams)
      if (session === undefined || stream.caller.session === session) for (const list of changed) stream.changed(list)
  }

  #leave(stream: ListenStream): void {
    if (!this.#streams.delete(stream)) return
    this.#options.budgets.streams.give(stream.caller.principal)
    if (this.#streams.size > 0) return
    this.#changes?.[Symbol.dispose]()
    this.#changes = undefined
  }
}

interface ListenRequest {
  readonly id: Id
  readonly lists: ReadonlySet<List>
  readonly caller: Caller
  readonly sink: ListenSink
  /** Called when the stream has ended. */
  left(): void
}

class ListenStream {
  readonly caller: Caller
  readonly #request: ListenRequest
  readonly #options: ListenOptions
  readonly #followed: ResourceSubscriptions
  /** The notifications of lists that changed, each always the same buffer. */
  readonly #news: ReadonlyMap<List, Buffer>
  readonly #about = new WeakMap<Buffer, string>()
  /** The notifications that wait for the acknowledgement; undefined after it. */
  #early: Set<Buffer> | undefined = new Set()
  #isOver = false

  constructor(request: ListenRequest, options: ListenOptions) {
    const { lists, caller } = request
    this.caller = caller
    this.#request = request
    this.#options = options
    this.#news = new Map([...lists].map((list) => [list, this.#notification(changeMethods[list])]))
    const { access, budgets, log } = options
    this.#followed = new ResourceSubscriptions({
      ...{ access, caller, budget: budgets.subscriptions, log },
      tell: (message) => this.#tell(message),
      news: (uri) => {
        const message = this.#notification('notifications/resources/updated', { uri })
        this.#about.set(message, uri)
        return message
      },
    })
  }

  /** Subscribes to the resources and then acknowledges those whose subscriptions succeeded in time. Never rejects. */
  async follow(uris: readonly string[]): Promise<void> {
    const { clock, log } = this.#options
    const following = new Set<string>()
    const all = uris.map(async (uri) => {
      try {
        await this.#followed.add(uri)
        following.add(uri)
      } catch (cause) {
        log.debug({ uri, err: cause }, 'cannot subscribe to a resource')
      }
    })
    await settles(Promise.all(all), followTimeoutMs, clock)
    const honoured = uris.filter((uri) => following.has(uri))
    for (const uri of uris) if (!following.has(uri)) this.#followed.remove(uri)
    this.#acknowledge(honoured)
  }

  changed(list: List): void {
    const message = this.#news.get(list)
    if (message !== undefined) this.#tell(message)
  }

  /** Stops notifications and ends the stream's resource subscriptions. */
  cancel(): void {
    this.#isOver = true
    this.#request.left()
    this.#followed[Symbol.dispose]()
  }

  end(): void {
    this.cancel()
    const { id, sink } = this.#request
    const _meta = { [metaKeys.subscriptionId]: id, [metaKeys.serverInfo]: this.#options.serverInfo }
    sink.end(resultBytes(id, Json.of({ resultType: 'complete', _meta })))
  }

  #notification(method: string, more: object = {}): Buffer {
    return notificationBytes(method, Json.of({ ...more, _meta: { [metaKeys.subscriptionId]: this.#request.id } }))
  }

  #tell(message: Buffer): void {
    if (this.#early) this.#early.add(message)
    else this.#request.sink.send(message)
  }

  #acknowledge(following: readonly string[]): void {
    if (this.#isOver) return
    const { lists, sink } = this.#request
    const notifications = {
      ...Object.fromEntries([...lists].map((list) => [list, true])),
      ...(following.length > 0 && { resourceSubscriptions: following }),
    }
    sink.send(this.#notification('notifications/subscriptions/acknowledged', { notifications }))
    const early = this.#early ?? []
    this.#early = undefined
    for (const message of early) {
      const uri = this.#about.get(message)
      if (uri === undefined || following.includes(uri)) sink.send(message)
    }
    // If no subscription was accepted, end the stream at once.
    if (Object.keys(notifications).length === 0) this.end()
  }
}

const listenLists = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const
type List = (typeof listenLists)[number]

/** The list to announce for each kind. MCP announces changes to templates as changes to resources; skills are resources. */
const listOfKind: Readonly<Record<Kind, List>> = {
  tool: 'toolsListChanged',
  prompt: 'promptsListChanged',
  resource: 'resourcesListChanged',
  template: 'resourcesListChanged',
  skill: 'resourcesListChanged',
}

const maxUris = 1_000

/** Reads what to listen for. Unknown members are ignored; the acknowledgement shows what was accepted. */
function readFilter({ notifications }: Params): {
  readonly lists: ReadonlySet<List>
  readonly uris: readonly string[]
} {
  if (!isRecord(notifications)) throw invalidFilter('"notifications" must be an object that names what to listen for.')
  for (const list of listenLists) {
    const wanted = notifications[list]
    if (wanted !== undefined && typeof wanted !== 'boolean') throw invalidFilter(`"${list}" must be true or false.`)
  }
  const uris = notifications.resourceSubscriptions ?? []
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string')) {
    throw invalidFilter('"resourceSubscriptions" must be a list of URIs.')
  }
  const different = new Set<string>(uris)
  if (different.size > maxUris) throw invalidFilter(`One stream can subscribe to at most ${maxUris} resources.`)
  return { lists: new Set(listenLists.filter((list) => notifications[list] === true)), uris: [...different] }
}

const invalidFilter = (message: string) => new ProtocolError(rpcCodes.params, message)
