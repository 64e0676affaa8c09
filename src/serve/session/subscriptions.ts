import type { Access } from '../../core/access.ts'
import { type Caller, callerKey } from '../../core/call.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Budget } from '../../core/limits/budget.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import type { Log } from '../../core/log.ts'
import { Json } from '../../json/json.ts'
import { notificationBytes } from '../../wire/message.ts'
import { ProtocolError, rpcCodes } from '../errors.ts'

export type SessionSubscriptions = ReturnType<typeof createResourceSubscriptions>

interface ActiveSubscription {
  readonly uri: string
  readonly asked: string | undefined
  readonly begun: Promise<AsyncDisposable>
  over: boolean
}

const maxFollowed = fixedLimits.sessionSubscriptions.value
const maxUriLength = 8_192

/** The resources that a session is subscribed to, by caller and by the URI that the client used. */
export function createResourceSubscriptions(options: {
  readonly access: Access
  readonly caller: Caller
  readonly budget: Budget
  readonly log: Log
  /** Sends a notification. All updates to a resource use the same buffer, so a pending one is not sent twice. */
  tell(message: Buffer): void
  news?(uri: string): Buffer
}) {
  const { access, caller, budget, log, tell, news = updated } = options
  const followed = new Map<string, ActiveSubscription>()

  const begin = async (uri: string, caller: Caller, following: () => ActiveSubscription): Promise<AsyncDisposable> => {
    const served = await access.view(caller).resolve('resource', uri, { operation: 'subscribe' })
    const message = news(uri)
    return access.subscribe(caller, served, () => {
      if (!following().over) tell(message)
    })
  }

  const stop = (following: ActiveSubscription) => {
    following.over = true
    following.begun
      .then((subscription) => subscription[Symbol.asyncDispose]())
      // Ignore the failure: the client gets no more updates in any case, even if the server still sends them.
      .catch((cause: unknown) => log.debug({ err: cause }, 'cannot unsubscribe from a resource on the server'))
  }

  const forget = (key: string) => {
    if (followed.delete(key)) budget.give(caller.principal)
  }

  const keyOf = (uri: string, acting: Caller) => `${callerKey(acting)}\n${uri}`

  const subscriptions = {
    /** Renews a subscription made at another replica, and notifies the client, which may have missed updates. */
    async resume(uri: string, acting: Caller): Promise<void> {
      await subscriptions.add(uri, acting)
      if (followed.has(keyOf(uri, acting))) tell(news(uri))
    },
    /** Subscribes to a resource once. `acting` is the session's caller, possibly acting as another agent. */
    async add(uri: string, acting: Caller = caller): Promise<void> {
      const key = keyOf(uri, acting)
      const known = followed.get(key)
      if (known !== undefined) {
        await known.begun
        return
      }
      if (uri.length > maxUriLength) {
        throw new ProtocolError(rpcCodes.params, `Cannot subscribe to a URI longer than ${maxUriLength} characters.`)
      }
      if (followed.size >= maxFollowed) {
        const sentence = `This session has ${maxFollowed} subscriptions: unsubscribe from some of them first.`
        throw new ToolwayError('OVERLOADED', sentence)
      }
      budget.claim(caller.principal)
      const begun = begin(uri, acting, () => following)
      const following: ActiveSubscription = { uri, asked: acting.asked, begun, over: false }
      followed.set(key, following)
      try {
        await following.begun
      } catch (thrown) {
        if (followed.get(key) === following) forget(key)
        throw thrown
      }
    },
    remove(uri: string, acting: Caller = caller): void {
      const key = keyOf(uri, acting)
      const following = followed.get(key)
      if (following === undefined) return
      forget(key)
      stop(following)
    },
    /** The subscriptions, each with the agent that its caller asked for. */
    all: () => [...followed.values()].map(({ uri, asked }) => ({ uri, asked })),
    [Symbol.dispose](): void {
      for (const [key, following] of followed) {
        forget(key)
        stop(following)
      }
    },
  }
  return subscriptions
}

const updated = (uri: string): Buffer => notificationBytes('notifications/resources/updated', Json.of({ uri }))
