import { Worker } from 'node:worker_threads'
import type { Clock } from '../../core/clock.ts'
import { type ErrorCode, errorKinds, ToolwayError } from '../../core/errors.ts'
import { createPortRpc, type RpcPeer } from '../../lib/port-rpc.ts'
import { moduleFile } from '../../runtime/package-paths.ts'
import type { ThreadError, ThreadMethods, ThreadOwnerMethods } from './admin-thread.ts'

interface ThreadClientOptions {
  readonly name: string
  readonly methods?: ThreadOwnerMethods
  prepare?(): Promise<void>
  /** The error for failures without a code, whose causes are only logged. */
  failure(cause: Error): Error
  /** Ends the thread, with all its requests, if a request takes longer. */
  readonly timeLimit?: { readonly ms: number; error(): Error }
  readonly clock: Clock
}

type ThreadResult<Name extends keyof ThreadMethods> = Awaited<ReturnType<ThreadMethods[Name]>>

/** An idle thread is terminated after this time to free its memory. */
const threadIdleMs = 60_000
const longestMs = 2 ** 31 - 1

/** Runs requests of the admin API in a thread of their own, which is started when it is needed. */
export function createThreadClient({ name, methods = {}, prepare, failure, timeLimit, clock }: ThreadClientOptions) {
  const pending = new Set<(error: Error) => void>()
  let thread: { readonly worker: Worker; readonly peer: RpcPeer<ThreadMethods> } | undefined
  let idleTimer: Disposable | undefined
  let disposed = false

  /** Recreates an error of the thread. Errors with a code keep it. */
  const errorOf = ({ name: kind, code, message }: ThreadError): Error =>
    code !== undefined && code in errorKinds
      ? new ToolwayError(code as ErrorCode, message)
      : failure(Object.assign(new Error(message), { name: kind }))

  const startThread = () => {
    const worker = new Worker(moduleFile('admin/thread/admin-thread'), { execArgv: [], name })
    worker.unref()
    worker.on('error', (cause) => thread?.worker === worker && void end(() => failure(cause)))
    worker.on('exit', () => thread?.worker === worker && void end(() => failure(new Error('the thread ended'))))
    const peer = createPortRpc<ThreadMethods>({
      port: {
        send: (message) => worker.postMessage(message),
        onMessage: (listener) => void worker.on('message', listener),
      },
      methods,
      timeoutMs: () => timeLimit?.ms ?? longestMs,
      clock,
      errors: { encode: () => undefined, decode: (encoded) => errorOf(encoded as ThreadError) },
    })
    return { worker, peer }
  }

  const end = async (error: () => Error = shutdownError) => {
    const last = thread
    thread = undefined
    idleTimer?.[Symbol.dispose]()
    for (const reject of pending) reject(error())
    await last?.worker.terminate()
  }

  return {
    async request<Name extends keyof ThreadMethods>(
      method: Name,
      ...params: Parameters<ThreadMethods[Name]>
    ): Promise<ThreadResult<Name>> {
      await prepare?.()
      if (disposed) throw shutdownError()
      idleTimer?.[Symbol.dispose]()
      thread ??= startThread()
      const { promise, resolve, reject } = Promise.withResolvers<ThreadResult<Name> | undefined>()
      pending.add(reject)
      thread.peer.request(method, ...params).then(resolve, reject)
      try {
        const result = await promise
        if (result !== undefined) return result
        const error = timeLimit?.error ?? shutdownError
        await end(error)
        throw error()
      } finally {
        pending.delete(reject)
        if (thread && pending.size === 0) idleTimer = clock.after(threadIdleMs, () => void end())
      }
    },
    notify: ((...params) => thread?.peer.notify(...params)) satisfies RpcPeer<ThreadMethods>['notify'],
    [Symbol.asyncDispose]() {
      disposed = true
      return end()
    },
  }
}

const shutdownError = () => new ToolwayError('OVERLOADED', 'This gateway is shutting down.')
