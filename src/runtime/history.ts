import type { Config } from '../config/schema.ts'
import type { Clock } from '../core/clock.ts'
import type { CapturedCall, CaptureStore, StoredCapture } from '../core/history.ts'
import type { Budgets } from '../core/limits/budget.ts'
import type { Log } from '../core/log.ts'
import type { Observer } from '../core/observer.ts'
import { jsonValue } from '../json/parse-json.ts'
import { sqliteHistory } from '../stores/sqlite/history-store.ts'
import { vaultSeal } from '../stores/vault.ts'
import type { CallRecord, RecentCalls } from '../telemetry/calls/call-records.ts'
import { createCallHistory } from '../telemetry/history/call-history.ts'
import { HistoryRecorder } from '../telemetry/history/history-recorder.ts'
import { moduleFile } from './package-paths.ts'

interface HistoryOptions {
  readonly budgets: Budgets
  readonly captures: Pick<CaptureStore, 'find'>
  redact(text: string): string
  readonly clock: Clock
  readonly log: Log
}

/** As many as are kept in memory. */
const maxRestored = 2_000

/**
 * Opens what the dashboard shows across restarts; undefined if it is disabled. Workers on one machine share a file; each
 * replica has its own. The file is opened when the first call has ended.
 */
export function openHistory({ history, stores, capture }: Config, options: HistoryOptions) {
  if (history.disabled) return undefined
  const { budgets, captures, redact, clock, log } = options
  const store = sqliteHistory({
    ...{ folder: stores.path, thread: moduleFile('stores/sqlite/history-thread') },
    ...{ keepMs: history.keep, maxBytes: history.maxBytes, startedAt: clock.now(), clock, log },
    captures: { keepMs: capture.keep, maxBytes: capture.maxBytes },
  })
  const seal = vaultSeal(stores.path)
  const captured = async (ids: readonly string[]): Promise<readonly StoredCapture[]> => {
    const found = ids.flatMap((id) => captures.find(id) ?? [])
    if (found.length === 0) return []
    try {
      const { close } = await seal()
      return found.map((call) => ({ id: call.id, at: call.at, sealed: close(JSON.stringify(call), call.id) }))
    } catch (cause) {
      log.warn({ err: cause }, 'captured calls cannot be stored: they are lost when Toolway stops')
      return []
    }
  }
  const recorder = new HistoryRecorder({ store, clock, redact, captured })
  const past = createCallHistory({ store, recorder, clock, redact })
  budgets.register('history_calls', () => recorder.use())
  let recording = false
  let restored: Promise<void> | undefined
  return {
    observer: {
      ended(observed) {
        if (recording) recorder.observer.ended(observed)
      },
    } satisfies Observer,
    add(call: CallRecord): void {
      if (recording) recorder.add(call)
    },
    /** Starts recording. Only a gateway with a dashboard records, so that commands do not open the file. */
    start(): void {
      recording = true
    },
    /** Adds the calls of earlier processes to those in memory, once. */
    async restore(calls: Pick<RecentCalls, 'restore'>): Promise<void> {
      restored ??= past.latest(maxRestored).then((latest) => calls.restore(latest))
      await restored
    },
    past,
    /** What was captured of a call that began at or after `since`, if it has ended. */
    async captured(id: string, since: number): Promise<CapturedCall | undefined> {
      await recorder.flush()
      const sealed = await store.capture(id, since)
      const text = sealed && (await seal()).open(sealed, id)
      return text ? (jsonValue(text) as CapturedCall) : undefined
    },
    logins: store.logins,
    /** Why history is not stored at present; undefined if it is. */
    trouble: store.trouble,
    async [Symbol.asyncDispose](): Promise<void> {
      store.stopping()
      await recorder[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}
