import type { CapturedCall, CaptureStore } from '../core/captures.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { BudgetUse } from '../core/limits/budget.ts'

export interface CaptureLimits {
  readonly keep: number
  readonly maxBytes: number
}

export interface MemoryCaptures extends CaptureStore, Disposable {
  use(): Omit<BudgetUse, 'name'>
}

interface Kept {
  readonly call: CapturedCall
  readonly bytes: number
  readonly storedAt: number
}

/**
 * Keeps captured calls in the memory of this process: each worker and each replica has its own, and the others ask it. The limits are read on each use, so that a reload applies at once.
 */
export function memoryCaptures(limits: () => CaptureLimits, clock: Clock): MemoryCaptures {
  /** All calls, oldest first. */
  const calls = new Map<string, Kept>()
  /** The ids and bytes of each caller's calls, oldest first. */
  const callers = new Map<string, { readonly ids: Set<string>; bytes: number }>()
  let used = 0
  let dropped = 0
  let timer: Timer | undefined

  const remove = (id: string): void => {
    const kept = calls.get(id)
    if (!kept) return
    calls.delete(id)
    used -= kept.bytes
    const { principal } = kept.call
    const own = callers.get(principal)
    if (!own) return
    own.ids.delete(id)
    own.bytes -= kept.bytes
    if (own.ids.size === 0) callers.delete(principal)
  }

  const shed = (id: string | undefined): boolean => {
    if (id === undefined) return false
    remove(id)
    dropped++
    return true
  }

  const dropExpired = (): void => {
    const since = clock.monotonic() - limits().keep
    for (const [id, { storedAt }] of calls) {
      if (storedAt > since) break
      remove(id)
    }
  }

  /** Drops expired calls even if no other call comes. */
  const expireLater = (): void => {
    const [oldest] = calls.values()
    if (timer || !oldest) return
    const ms = Math.max(oldest.storedAt + limits().keep - clock.monotonic(), 1_000)
    timer = clock.after(ms, () => {
      timer = undefined
      dropExpired()
      expireLater()
    })
  }

  return {
    put(call) {
      remove(call.id)
      dropExpired()
      const { maxBytes } = limits()
      const bytes = bytesOf(call)
      if (bytes > shareOf(maxBytes)) {
        dropped++
        return
      }
      const own = callers.get(call.principal) ?? { ids: new Set(), bytes: 0 }
      callers.set(call.principal, own)
      calls.set(call.id, { call, bytes, storedAt: clock.monotonic() })
      own.ids.add(call.id)
      own.bytes += bytes
      used += bytes
      while (own.bytes > shareOf(maxBytes) && shed(first(own.ids)));
      while (used > maxBytes && shed(first(calls.keys())));
      expireLater()
    },
    find(id) {
      dropExpired()
      return calls.get(id)?.call
    },
    use() {
      const { maxBytes } = limits()
      let largest = 0
      for (const { bytes } of callers.values()) largest = Math.max(largest, bytes)
      return { used, limit: maxBytes, perCaller: shareOf(maxBytes), largest, refused: dropped }
    },
    [Symbol.dispose]: () => timer?.[Symbol.dispose](),
  }
}

/** One caller's share: half, so that a busy caller does not push out the calls of all others. */
const shareOf = (maxBytes: number): number => Math.ceil(maxBytes / 2)

const first = (ids: Iterable<string>): string | undefined => ids[Symbol.iterator]().next().value

const emptyCall = 600
const emptyProgress = 100

/** The approximate size of a call in memory. */
function bytesOf({ name, uri = '', arguments: args, result, error, progress }: CapturedCall): number {
  const texts = args.text.length + (result?.text.length ?? 0) + (error?.message.length ?? 0)
  let bytes = emptyCall + 2 * (texts + name.length + uri.length)
  for (const { message } of progress) bytes += emptyProgress + 2 * (message?.length ?? 0)
  return bytes
}
