import type { Log } from '../../core/log.ts'
import { createDelivery, type DeliveryOptions } from './delivery.ts'
import { createQueue } from './queue.ts'

/** Sends spans on, in batches. Whatever happens to the receiver, calls never wait for it and memory stays bounded. */
export interface Exporter extends AsyncDisposable {
  /** The spans of one call. Where there is no room they are dropped, and counted. */
  push(spans: readonly string[]): void
  stats(): ExporterStats
}

/** Spans by what became of them. */
export interface ExporterStats {
  readonly sent: number
  readonly dropped: number
  readonly queued: number
}

export interface ExporterOptions extends DeliveryOptions {
  /** What stands before and behind the spans of a batch. */
  readonly envelope: { readonly head: string; readonly tail: string }
  readonly log: Log
}

/** So many spans leave at once, so long those wait that are fewer, and so much may wait in all. */
const batchSize = 512
const batchMs = 1_000
const maxCharacters = 8 * 1024 * 1024
/** How long the end may take. */
const goodbyeMs = 2_000

export function createExporter(options: ExporterOptions): Exporter {
  const { post, envelope, receiver, clock, log } = options
  const queue = createQueue(maxCharacters)
  const delivery = createDelivery(options)
  let timer: Disposable | undefined
  let sending: Promise<void> | undefined
  let closing: Promise<void> | undefined
  let sent = 0
  let dropped = 0

  return {
    push(spans) {
      if (closing || !queue.add(spans)) dropped += spans.length
      else if (queue.size >= batchSize) begin()
      else timer ??= clock.after(batchMs, begin)
    },
    stats: () => ({ sent, dropped, queued: queue.size }),
    [Symbol.asyncDispose]() {
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

  /** Sends what is there, and goes on as long as there is enough. */
  async function send(enough: number): Promise<void> {
    do {
      const spans = queue.take(batchSize)
      if (spans.length === 0) return
      const body = Buffer.from(`${envelope.head}${spans.join(',')}${envelope.tail}`)
      const taken = await delivery.deliver(body, spans.length)
      sent += taken
      dropped += spans.length - taken
    } while (queue.size >= enough)
  }

  /** Everything is tried once more, but nobody waits long for it. */
  async function close(): Promise<void> {
    timer?.[Symbol.dispose]()
    using _ = clock.after(goodbyeMs, () => delivery[Symbol.dispose]())
    delivery.hurry()
    await sending
    await send(1)
    await post[Symbol.asyncDispose]()
    if (dropped > 0) log.warn({ receiver, dropped, sent }, 'some traces were never delivered')
  }
}
