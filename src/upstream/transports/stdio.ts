import type { Writable } from 'node:stream'
import { settles } from '../../core/deadline.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { createLineReader, toOneLine } from '../../wire/bytes.ts'
import { maxMessage } from '../../wire/message.ts'
import { type ServerProcessHandle, type ServerProcessOptions, startServerProcess } from './child-process.ts'
import { createReadLimit, maxPerSecond, type ReadBudget } from './read-limit.ts'
import { createProcessOutput, maxStderrLine, type OutputLine, type RedactLine } from './stderr.ts'
import type { OutgoingMessage, Transport, TransportReceiver } from './transport.ts'
import { brokenConnectionCode, closedByUs, LimitExceeded, StrayOutput, unsentError } from './transport-errors.ts'

export interface StdioTransportOptions extends ServerProcessOptions {
  /** Called if the server exceeds a limit, without a request that fails for it. */
  exceeded?(limit: LimitExceeded): void
  /** What the output of all processes of the server may use together; by default, each stream has a budget of its own. */
  readonly reading?: ReadBudget | undefined
  /** How long a process may take to send its first message after it has written other output to stdout. */
  readonly startTimeout?: number | undefined
  readonly log: Log
  /** Redacts output that is not part of the protocol, before it reaches an error or the log. */
  readonly redact?: RedactLine | undefined
  readonly wrote?: ((line: OutputLine) => void) | undefined
}

/** How long a process that writes other output to stdout before the handshake may take by default to send a message. */
const firstMessageMs = 10_000

/** How long a line that is too long may take to end. */
const lineEndMs = 1_000

/** How much other output a server may write to stdout before the handshake. No start needs so much; a wrong command does. */
const maxEarlyOutput = 4 * 1024 * 1024

/** How long a process's output may take to end after the process has exited. */
const graceMs = 250

/** A transport to a child process, with newline-delimited messages on stdin and stdout. */
export function stdioTransport(options: StdioTransportOptions): Transport {
  const { name, redact, wrote, clock, log } = options
  const output = createProcessOutput({ server: name, secrets: Object.values(options.env), redact, wrote, clock, log })
  let starting: Promise<ServerProcessHandle> | undefined
  let child: ServerProcessHandle | undefined
  let outbox: Outbox | undefined
  let receiver: TransportReceiver | undefined
  let established = false
  let disposing: Promise<void> | undefined
  /** Why nothing can be sent any more; undefined while messages can be sent. */
  let over: ToolwayError | undefined = unavailable('has not been started yet')

  return {
    kind: 'stdio',
    get usable() {
      return over === undefined
    },
    get pid() {
      return child?.pid
    },
    explanation,
    open,
    send,
    established() {
      established = true
    },
    [Symbol.asyncDispose]() {
      disposing ??= dispose()
      return disposing
    },
  }

  async function open(given: TransportReceiver, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    starting = startServerProcess(options)
    child = await starting
    if (!signal.aborted && !disposing) {
      receiver = given
      over = undefined
      listen(child)
      return
    }
    await child.close()
    throw signal.reason ?? closedByUs(name)
  }

  function listen({ streams, ended, drained }: ServerProcessHandle): void {
    const { stdin, stdout, stderr } = streams
    const flooded = () => options.exceeded?.(new LimitExceeded('flood', maxPerSecond))
    const limitStdout = createReadLimit(stdout, clock, flooded, options.reading)
    const limitStderr = createReadLimit(stderr, clock, flooded, options.reading)
    const messageWithinMs = options.startTimeout ?? firstMessageMs
    let early = 0
    let hasSpoken = false
    let lineEnd: Disposable | undefined
    let firstMessage: Disposable | undefined
    let isNamed = false
    const other = (bytes: Buffer) => {
      output.line('stdout', bytes)
      if (!isNamed && output.stray !== '') {
        isNamed = true
        options.exceeded?.(new LimitExceeded('stray-output', 0, JSON.stringify(output.stray)))
      }
      if (!hasSpoken) firstMessage ??= clock.after(messageWithinMs, silent)
      if (established && !over) limitStdout.line(bytes)
      else isEarly(bytes.length)
    }
    const skipped = (length: number) => {
      if (established && !over) limitStdout.bytes(length)
      else isEarly(length)
    }
    const isEarly = (length: number) => {
      early += length
      if (early > maxEarlyOutput && !over) giveUp(notProtocol, new StrayOutput())
    }
    const silent = () => {
      const why = `sent no message within ${messageWithinMs / 1000} s after other output, and was stopped: log to stderr`
      const advice = `or set mcpServers.${name}.startTimeout if it starts slowly`
      if (!hasSpoken && !over) giveUp(`${why}, ${advice}`, new StrayOutput())
    }
    const lines = createLineReader({
      maxLength: maxMessage,
      skipsEmpty: true,
      line: (bytes) => {
        if (!looksLikeMessage(bytes)) return other(bytes)
        hasSpoken = true
        if (!receiver?.message(bytes)) limitStdout.message(bytes)
      },
      skipped,
      // A line that does not end would swallow the responses to other calls.
      tooLong: () => {
        lineEnd = clock.after(lineEndMs, tooLong)
      },
      dropped: (head, tail, length) => {
        lineEnd?.[Symbol.dispose]()
        const id = responseId(head, tail)
        if (!looksLikeMessage(head)) {
          output.line('stdout', head)
          skipped(length)
        } else if (id === undefined) tooLong()
        else receiver?.failed(id, failure(`responded with more than ${maxMegabytes} MiB.`, exceeded()))
      },
    })
    // Stop the server if the line does not end, or if we cannot know which request it was the response to.
    const tooLong = () => over || giveUp(`sent a line longer than ${maxMegabytes} MiB and was stopped`, exceeded())
    const written = createLineReader({
      maxLength: maxStderrLine,
      skipsEmpty: true,
      skipped: limitStderr.bytes,
      dropping: ({ length }) => limitStderr.bytes(length),
      line: (bytes) => {
        output.line('stderr', bytes)
        limitStderr.line(bytes)
      },
    })
    stdout.on('data', lines.push)
    stderr.on('data', written.push)
    for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {})
    outbox = createOutbox(stdin, refuse)

    // Stop a server that closed stdin or stdout: it can no longer serve, even if its process is still running.
    const half = async (which: string): Promise<void> => {
      if (!(await settles(ended, graceMs, clock)) && !disposing) giveUp(`closed its ${which} and was stopped`)
    }
    stdin.once('close', () => void half('input'))
    stdout.once('end', () => void half('output'))

    ended.then(async (how) => {
      // By now, Node has destroyed stdin, which settles pending writes.
      stop(`ended (${how})`)
      firstMessage?.[Symbol.dispose]()
      limitStdout.end()
      limitStderr.end()
      await settles(drained, graceMs, clock)
      lines.end()
      written.end()
      stdout.destroy()
      stderr.destroy()
      report(`ended (${how})`)
    })
  }

  function send({ body, signal }: OutgoingMessage): Promise<void> {
    if (over) return Promise.reject(over)
    const { waiting, send } = outbox as Outbox
    if (waiting > maxMessage) return Promise.reject(unavailable('is not reading its input'))
    return send(toOneLine(body), signal)
  }

  /** Rejects a message that was not read. The process may have died, so the next call must use another process. */
  function refuse(reject: (reason: unknown) => void): void {
    over ??= unavailable('stopped reading')
    const refusal = over
    // During the handshake, wait a moment: the exit status and stderr follow soon and explain more than this error.
    if (established) reject(refusal)
    else clock.after(2 * graceMs, () => reject(refusal))
  }

  function stop(what: string): void {
    over ??= unavailable(what)
    outbox?.close()
  }

  function giveUp(what: string, cause?: Error): void {
    stop(what)
    child?.kill()
    child?.streams.stdin.destroy()
    report(what, cause)
  }

  /** Notifies the receiver once that the process has ended, after the unwritten messages have been rejected. */
  function report(what: string, cause?: Error): void {
    const notified = receiver
    receiver = undefined
    if (!notified || disposing) return
    const advice = established ? '' : ' Run its command manually to see the cause.'
    const error = failure(`${what}.${explanation()}${advice}`, cause)
    setImmediate(() => {
      if (!disposing) notified.closed(error)
    })
  }

  function explanation(): string {
    const { last, stray } = output
    const line = established || stray === '' ? '' : ` It wrote "${stray}" to stdout, which is only for MCP messages.`
    return last === '' ? line : `${line} It last wrote: "${last}".`
  }

  function failure(what: string, cause?: Error): ToolwayError {
    return new ToolwayError(brokenConnectionCode(established), `${name} ${what}`, { server: name, cause })
  }

  async function dispose(): Promise<void> {
    over = closedByUs(name)
    receiver = undefined
    outbox?.close()
    const child = await starting?.catch(() => undefined)
    if (!child) return
    await child.close()
    const { stdin, stdout, stderr } = child.streams
    for (const stream of [stdin, stdout, stderr]) stream.destroy()
  }

  function unavailable(what: string): ToolwayError {
    return unsentError(name, `${name} ${what}; try again.`)
  }
}

const notProtocol = `wrote more than ${maxEarlyOutput / 1024 / 1024} MiB to stdout that are not MCP messages, and was stopped`
const maxMegabytes = maxMessage / 1024 / 1024
const exceeded = (): LimitExceeded => new LimitExceeded('large-message', maxMessage)

/** The request that a response is for, of which only the start and the end are known; undefined if that is unclear. */
function responseId(head: Buffer, tail: Buffer): number | undefined {
  const start = /^(?:\xef\xbb\xbf)?\s*\{((?:\s*"(?:jsonrpc|id)"\s*:\s*(?:"[^"]*"|\d+)\s*,)*)\s*"(?:result|error)"\s*:/
  const before = start.exec(head.toString('latin1'))?.[1]
  if (before === undefined) return undefined
  const end = /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]*"\s*)?\}\s*$/
  const id = /"id"\s*:\s*(\d{1,15})\s*,/.exec(before) ?? end.exec(tail.toString('latin1'))
  return id ? Number(id[1]) : undefined
}

/** Whether a line may be a message. Messages are JSON objects; anything else on stdout is ordinary output. */
function looksLikeMessage(line: Buffer): boolean {
  const from = line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0
  for (let at = from; at < line.length; at++) {
    const byte = line[at]
    if (byte !== 0x20 && byte !== 0x09) return byte === 0x7b
  }
  return false
}

type Outbox = ReturnType<typeof createOutbox>

interface QueuedMessage {
  readonly body: Buffer
  readonly signal: AbortSignal | undefined
  resolve(): void
  reject(reason: unknown): void
}

const LINE_FEED = 0x0a
const lineFeed = Buffer.from([LINE_FEED])

/** The largest write to a pipe that POSIX guarantees to be atomic. */
const atomicBytes = 4096

/**
 * Queues messages for a pipe. Messages from one turn of the event loop are sent in one write, as long as that write is
 * small enough to be atomic. So after a failed write it is known which messages cannot have been read: those whose line
 * ends were not written. `refuse` receives the reject function of a message that was certainly not read, and decides
 * when to call it and with which error.
 */
export function createOutbox(pipe: Writable, refuse: (reject: (reason: unknown) => void) => void) {
  /** The queued messages, each with its cancel listener if the wait may be long. */
  const queue = new Map<QueuedMessage, (() => void) | undefined>()
  let queued = 0
  let scheduled = false
  let closed = false

  return {
    /** How many bytes the other side has not read yet. */
    get waiting(): number {
      return queued + pipe.writableLength
    },
    /** Resolves when the pipe has accepted the whole line. A message that is cancelled in the queue is not written. */
    send(body: Buffer, signal?: AbortSignal): Promise<void> {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      if (closed) refuse(reject)
      else {
        wait({ body, signal, resolve, reject })
        writeSoon()
      }
      return promise
    },
    close,
  }

  function wait(message: QueuedMessage): void {
    const long = pipe.writableLength > 0
    queue.set(message, long ? cancelled : undefined)
    queued += message.body.length
    if (long) message.signal?.addEventListener('abort', cancelled, { once: true })

    function cancelled(): void {
      take(message)
      message.reject(message.signal?.reason)
    }
  }

  function take(message: QueuedMessage): void {
    const cancelled = queue.get(message)
    if (cancelled) message.signal?.removeEventListener('abort', cancelled)
    queue.delete(message)
    queued -= message.body.length
  }

  /** Writes at the end of this turn of the event loop, so that concurrent messages share a write. */
  function writeSoon(): void {
    if (scheduled || pipe.writableLength > 0) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      next()
    })
  }

  function next(): void {
    while (queue.size > 0 && pipe.writableLength === 0 && !closed) {
      const messages = bundle()
      if (messages.length > 0) write(messages)
    }
  }

  /** Takes from the queue the first messages that fit into one atomic write. */
  function bundle(): QueuedMessage[] {
    const messages: QueuedMessage[] = []
    let bytes = 0
    for (const message of queue.keys()) {
      const { body, signal, reject } = message
      if (!signal?.aborted) {
        bytes += body.length + 1
        if (messages.length > 0 && bytes > atomicBytes) break
        messages.push(message)
      } else reject(signal.reason)
      take(message)
    }
    return messages
  }

  function write(messages: readonly QueuedMessage[]): void {
    const written = (error?: Error | null) => {
      if (error) {
        for (const { reject } of messages) refuse(reject)
        close()
      } else {
        resolve()
        next()
      }
    }
    const resolve = () => {
      for (const message of messages) message.resolve()
    }
    const [first] = messages as [QueuedMessage]
    if (first.body.length < atomicBytes) pipe.write(joined(messages), written)
    else {
      pipe.cork()
      pipe.write(first.body)
      pipe.write(lineFeed, written)
      pipe.uncork()
    }
    // The pipe accepted everything at once, so its later errors do not affect these messages.
    if (pipe.writableLength === 0 && !pipe.errored && !pipe.destroyed) resolve()
  }

  function close(): void {
    closed = true
    for (const message of queue.keys()) {
      take(message)
      refuse(message.reject)
    }
  }
}

function joined(messages: readonly QueuedMessage[]): Buffer {
  const bytes = messages.reduce((sum, { body }) => sum + body.length + 1, 0)
  const lines = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const { body } of messages) {
    lines.set(body, at)
    at += body.length
    lines[at++] = LINE_FEED
  }
  return lines
}
