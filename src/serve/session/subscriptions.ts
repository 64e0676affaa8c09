import type { Access } from '../../core/access.ts'
import type { Caller } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { Log } from '../../core/log.ts'
import { notificationBytes } from '../../wire/message.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'

/** The resources that one session follows, each by the spelling its client used. */
export interface ResourceSubscriptions extends Disposable {
  /** Follows a resource, as another agent of the caller where one is given; to follow it twice is to follow it once. Rejects if it cannot be found or followed. */
  add(uri: string, caller?: Caller): Promise<void>
  /** Follows what was followed elsewhere before. What has changed meanwhile nobody knows, so that it is told of at once. */
  resume(uri: string): Promise<void>
  /** Nothing more is told of it from now on; one that is not followed is no error. */
  remove(uri: string): void
  /** All that are followed. */
  uris(): readonly string[]
}

interface ActiveSubscription {
  readonly begun: Promise<AsyncDisposable>
  over: boolean
}

/** More is a client gone wild; what it keeps of each is its URI, so that is bounded too. */
const maxFollowed = 1_000
const maxUriLength = 8_192

export function createResourceSubscriptions(options: {
  readonly access: Access
  readonly caller: Caller
  readonly log: Log
  /** Tells the client; the same buffer each time, so that one that waits is not told twice. */
  tell(message: Buffer): void
  /** What it is told of a resource that has changed. */
  news?(uri: string): Buffer
}): ResourceSubscriptions {
  const { access, caller, log, tell, news = updated } = options
  const followed = new Map<string, ActiveSubscription>()

  const begin = async (uri: string, caller: Caller, following: () => ActiveSubscription): Promise<AsyncDisposable> => {
    const served = await access.view(caller).resolve('resource', uri)
    const message = news(uri)
    return access.subscribe(caller, served, () => {
      if (!following().over) tell(message)
    })
  }

  const stop = (following: ActiveSubscription) => {
    following.over = true
    following.begun
      .then((subscription) => subscription[Symbol.asyncDispose]())
      // The client has been told that it follows nothing, and hears nothing: only the server might not know.
      .catch((cause: unknown) => log.debug({ cause }, 'A subscription could not be taken back'))
  }

  const subscriptions: ResourceSubscriptions = {
    async resume(uri) {
      await subscriptions.add(uri)
      if (followed.has(uri)) tell(news(uri))
    },
    async add(uri, acting = caller) {
      const known = followed.get(uri)
      if (known !== undefined) {
        await known.begun
        return
      }
      if (uri.length > maxUriLength) {
        throw new ProtocolError(rpcCodes.params, `A URI longer than ${maxUriLength} characters cannot be followed.`)
      }
      if (followed.size >= maxFollowed) {
        const sentence = `This session follows ${maxFollowed} resources: unsubscribe from some of them first.`
        throw new ToolwayError('OVERLOADED', sentence)
      }
      const following: ActiveSubscription = { begun: begin(uri, acting, () => following), over: false }
      followed.set(uri, following)
      try {
        await following.begun
      } catch (thrown) {
        if (followed.get(uri) === following) followed.delete(uri)
        throw thrown
      }
    },
    remove(uri) {
      const following = followed.get(uri)
      if (following === undefined) return
      followed.delete(uri)
      stop(following)
    },
    uris: () => [...followed.keys()],
    [Symbol.dispose]() {
      for (const following of followed.values()) stop(following)
      followed.clear()
    },
  }
  return subscriptions
}

const updated = (uri: string): Buffer => notificationBytes('notifications/resources/updated', Json.of({ uri }))
