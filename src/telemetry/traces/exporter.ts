import type { Clock } from '../../core/clock.ts'
import type { Log } from '../../core/log.ts'
import { backoffMs } from '../../lib/duration.ts'
import type { OtlpClient, OtlpReply } from './otlp-client.ts'

export type Exporter = ReturnType<typeof createExporter>

export interface ExporterOptions extends DeliveryOptions {
  /** Makes a request of encoded spans. */
  encode(spans: readonly string[]): Buffer
}

/** Max spans per batch, max time to wait before a smaller batch is sent, and max size of the queue. */
const batchSize = 512
const batchMs = 1_000
const maxBytes = 8 * 1024 * 1024
const goodbyeMs = 2_000

/** Sends spans in batches. Calls never wait for the receiver, and memory use is limited. */
export function createExporter(options: ExporterOptions) {
  const { post, encode, receiver, clock, log } = options
  const queue = createQueue(maxBytes)
  const delivery = createDelivery(options)
  let timer: Disposable | undefined
  let sending: Promise<void> | undefined
  let closing: Promise<void> | undefined
  let sent = 0
  let dropped = 0

  return {
    /** Queues the spans of one call. If the queue is full, they are dropped and counted. */
    push(spans: readonly string[]): void {
      if (closing || !queue.add(spans)) dropped += spans.length
      else if (queue.size >= batchSize) begin()
      else timer ??= clock.after(batchMs, begin)
    },
    stats: () => ({ sent, dropped, queued: queue.size }),
    [Symbol.asyncDispose](): Promise<void> {
      closing ??= close()
      return closing
    },
  }

  function begin(): void {
    timer?.[Symbol.dispose]()
    timer = undefined
    const ended = () => {
      sending = undefined
      if (queue.size > 0 && !closing) timer ??= clock.after(batchMs, begin)
    }
    sending ??= send(batchSize).then(ended, ended)
  }

  /** Sends one batch, and then more while at least `enough` spans are queued. */
  async function send(enough: number): Promise<void> {
    do {
      const spans = queue.take(batchSize)
      if (spans.length === 0) return
      const taken = await delivery.deliver(encode(spans), spans.length)
      sent += taken
      dropped += spans.length - taken
    } while (queue.size >= enough)
  }

  /** Closes the exporter. Tries to send each remaining batch once, within `goodbyeMs`. */
  async function close(): Promise<void> {
    timer?.[Symbol.dispose]()
    using _ = clock.after(goodbyeMs, () => delivery[Symbol.dispose]())
    delivery.hurry()
    await sending
    await send(1)
    await post[Symbol.asyncDispose]()
    if (dropped > 0) log.warn({ receiver, dropped, sent }, 'some traces were not exported')
  }
}

/** A queue that is limited by the total length of its spans. The spans of one call stay together. */
function createQueue(maxBytes: number) {
  let groups: (readonly string[])[] = []
  let bytes = 0
  const queue = {
    size: 0,
    add(spans: readonly string[]): boolean {
      const more = bytesOf(spans)
      if (bytes + more > maxBytes) return false
      groups.push(spans)
      queue.size += spans.length
      bytes += more
      return true
    },
    /** Takes the oldest spans: at most `maxSpans`, unless a single call has more. */
    take(maxSpans: number): string[] {
      const taken: string[] = []
      let count = 0
      for (const group of groups) {
        if (count > 0 && taken.length + group.length > maxSpans) break
        taken.push(...group)
        count++
      }
      groups = groups.slice(count)
      queue.size -= taken.length
      bytes -= bytesOf(taken)
      return taken
    },
  }
  return queue
}

const bytesOf = (spans: readonly string[]): number => spans.reduce((sum, { length }) => sum + length, 0)

interface DeliveryOptions {
  readonly post: OtlpClient
  /** The receiver's name for the log. Must not contain secrets. */
  readonly receiver: string
  readonly clock: Clock
  readonly log: Log
  random?(): number
}

/** Max attempts per batch, and the bounds of the pauses between attempts. */
const maxAttempts = 5
const firstPauseMs = 1_000
const maxPauseMs = 30_000

function createDelivery(options: DeliveryOptions) {
  const { post, receiver, clock, log, random = Math.random } = options
  const over = new AbortController()
  let hurried = false
  let wake: (() => void) | undefined
  let failures = 0
  /** The time before which no batch is sent. */
  let resumeAt = 0

  return {
    /** Sends one batch. Resolves with the number of accepted spans. Never rejects. */
    async deliver(body: Buffer, spans: number): Promise<number> {
      for (let tried = 1; ; tried++) {
        await untilResumed()
        const reply = await post.send(body, over.signal)
        if (reply.kind === 'taken') {
          recovered()
          return spans - Math.min(reply.rejected, spans)
        }
        failed(reply)
        if (reply.kind === 'refused' || tried === maxAttempts || hurried) return 0
      }
    },
    /** Stops waiting between attempts. From now on, each batch is tried once. */
    hurry(): void {
      hurried = true
      wake?.()
    },
    [Symbol.dispose]: () => over.abort(),
  }

  async function untilResumed(): Promise<void> {
    const ms = resumeAt - clock.monotonic()
    if (hurried || ms <= 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    using _ = clock.after(ms, resolve)
    wake = resolve
    await promise
  }

  /** Sets the pause after a failed attempt. Logs once per outage, not once per batch. */
  function failed(reply: Exclude<OtlpReply, { kind: 'taken' }>): void {
    const maxMs = backoffMs(failures, { firstMs: firstPauseMs, maxMs: maxPauseMs })
    // Add jitter, so that gateways that failed together do not retry together.
    const pauseMs = maxMs / 2 + (maxMs / 2) * random()
    resumeAt = clock.monotonic() + Math.max(pauseMs, reply.kind === 'later' ? reply.waitMs : 0)
    if (failures++ > 0) return
    const refused = reply.kind === 'refused'
    const fate = refused ? 'the receiver refuses them' : 'they are queued, and dropped if the queue is full'
    log.warn({ receiver, reason: reply.why }, `traces cannot be exported; ${fate}`)
  }

  function recovered(): void {
    if (failures > 0) log.info({ receiver }, 'trace export works again')
    failures = 0
    resumeAt = 0
  }
}
