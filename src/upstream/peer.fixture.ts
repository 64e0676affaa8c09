import { ToolwayError } from '../core/errors.ts'
import type { Transport, TransportReceiver } from './transports/transport.ts'

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: unknown
  readonly error?: unknown
}

type Answer = (message: Message, peer: ScriptedPeer) => unknown

/**
 * A server in memory behind a real Transport. It answers according to a script and remembers the messages that it
 * received.
 */
export interface ScriptedPeer {
  readonly transport: Transport
  readonly heard: Message[]
  readonly version: string | undefined
  readonly disposed: boolean
  /** Sends a message to the client; with `exchange`, on the stream of that request. */
  say(message: object, exchange?: number): void
  die(sentence?: string): void
  /** Reports that a request will not get a response although the connection is fine. */
  fail(exchange: number, cause?: Error): void
  /** Makes the transport unusable without notifying the receiver. */
  failSilently(): void
}

/**
 * Creates a server that responds to a request with the result of `answers[method]`. `{ error }` becomes an error
 * response; a method without an answer gets no response.
 */
export function scriptedPeer(
  answers: Record<string, Answer>,
  { openFails, kind = 'stdio' }: { openFails?: Error; kind?: Transport['kind'] } = {},
): ScriptedPeer {
  const heard: Message[] = []
  let receiver: TransportReceiver | undefined
  let version: string | undefined
  let disposed = false
  let usable = true
  const peer: ScriptedPeer = {
    heard,
    get version() {
      return version
    },
    get disposed() {
      return disposed
    },
    say: (message, exchange) =>
      receiver?.message(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message })), exchange),
    die: (sentence = 'The process ended.') => {
      usable = false
      receiver?.closed(new ToolwayError('OUTCOME_UNKNOWN', sentence))
    },
    fail: (exchange, cause) =>
      receiver?.failed(exchange, new ToolwayError('OUTCOME_UNKNOWN', 'The response broke off.', { cause })),
    failSilently: () => {
      usable = false
    },
    transport: {
      kind,
      get usable() {
        return usable
      },
      async open(given) {
        if (openFails) throw openFails
        receiver = given
      },
      async send({ body }) {
        if (!usable) throw new ToolwayError('SERVER_UNAVAILABLE', 'The process has ended.', { unsent: true })
        const message: Message = JSON.parse(body.toString())
        heard.push(message)
        const answer = message.method ? answers[message.method] : undefined
        if (!answer || message.id === undefined) return
        const given = await answer(message, peer)
        if (given === undefined) return
        const isError = typeof given === 'object' && given !== null && 'error' in given
        peer.say(isError ? { id: message.id, ...given } : { id: message.id, result: given })
      },
      established: (given) => {
        version = given
      },
      async [Symbol.asyncDispose]() {
        disposed = true
      },
    },
  }
  return peer
}
