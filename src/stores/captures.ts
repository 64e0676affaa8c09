import type { Clock, Timer } from '../core/clock.ts'
import type { CapturedCall, CaptureStore } from '../core/history.ts'
import { Budget, type BudgetUse } from '../core/limits/budget.ts'
import { RecentlyUsed } from '../core/limits/recently-used.ts'

interface KeptCapture {
  readonly owner: string
  readonly call: CapturedCall
  readonly bytes: number
  readonly storedAt: number
}

/**
 * Keeps captured calls in the memory of this process: each worker and each replica has its own, and the others ask it.
 * The limits are read on each use, so that a reload applies at once.
 */
export function memoryCaptures(
  limits: () => { readonly keep: number; readonly maxBytes: number },
  clock: Clock,
): CaptureStore & Disposable & { use(): Omit<BudgetUse, 'name'> } {
  const calls = new Map<string, KeptCapture>()
  const budget = new Budget('capture', { what: 'bytes of captured calls', limit: 0, perCaller: 0 })
  const kept = new RecentlyUsed<KeptCapture>([{ budget, of: ({ bytes }) => bytes }], ({ call }) =>
    calls.delete(call.id),
  )
  let timer: Timer | undefined

  const remove = (id: string): void => {
    const known = calls.get(id)
    calls.delete(id)
    if (known) kept.delete(known)
  }

  const dropExpired = (): void => {
    const since = clock.monotonic() - limits().keep
    for (const [id, { storedAt }] of calls) {
      if (storedAt > since) break
      remove(id)
    }
  }

  const applyLimits = (): void => {
    const { maxBytes } = limits()
    budget.resize(maxBytes, Math.ceil(maxBytes / 2))
  }

  /** Drops expired calls even if no other call comes. */
  const expireLater = (): void => {
    const { oldest } = kept
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
      applyLimits()
      const bytes = captureBytes(call)
      if (bytes > budget.perCaller) return budget.shed()
      const captured = { owner: call.principal, call, bytes, storedAt: clock.monotonic() }
      calls.set(call.id, captured)
      kept.add(captured)
      expireLater()
    },
    find(id) {
      dropExpired()
      return calls.get(id)?.call
    },
    use() {
      applyLimits()
      return budget.use()
    },
    [Symbol.dispose]: () => timer?.[Symbol.dispose](),
  }
}

const emptyCaptureBytes = 600
const emptyProgress = 100

function captureBytes({ name, uri = '', arguments: args, result, error, progress }: CapturedCall): number {
  const texts = args.text.length + (result?.text.length ?? 0) + (error?.message.length ?? 0)
  let bytes = emptyCaptureBytes + 2 * (texts + name.length + uri.length)
  for (const { message } of progress) bytes += emptyProgress + 2 * (message?.length ?? 0)
  return bytes
}
