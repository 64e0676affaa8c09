import { createManualClock } from '../../tests/fixtures/clock.ts'
import { callOf, entryOf } from '../core/call.fixture.ts'
import { type Result, textResult } from '../core/result.ts'
import { type BulkheadOptions, bulkhead } from './bulkhead.ts'
import { attemptOf } from './pipeline.fixture.ts'

export interface Asked {
  readonly server?: string
  readonly agent?: string
  /** A caller without admin rights; otherwise an admin. */
  readonly principal?: string
  readonly timeoutMs?: number
  readonly carries?: true
}

/** One call whose end is in the hand of the test. */
export interface Running {
  /** Whether it has got its places. */
  readonly sent: boolean
  readonly answer: Promise<Result>
  end(how?: Error): Promise<void>
  /** Cancels the call, which then ends at once. */
  abort(): Promise<void>
}

/** A turn of the loop: everything that can settle without time passing has settled. */
export const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

type Settings = Pick<BulkheadOptions, 'clock' | 'maxWaitMs'> & {
  serverLimit: BulkheadOptions['serverLimit']
  agentLimit: BulkheadOptions['agentLimit']
  total: number
  queue: number
  isStarting?: BulkheadOptions['isStarting']
  perClient?: BulkheadOptions['perClient']
}

/** A bulkhead by a clock of the test; its `options` may be changed on the way. */
export function bulkheadOf(changes: Partial<Settings> = {}) {
  const clock = createManualClock()
  const options: Settings = {
    serverLimit: (server: string) => (server === 'native' ? undefined : 2),
    agentLimit: () => undefined,
    total: 100,
    queue: 100,
    clock,
    ...changes,
  }
  const { step, ...rest } = bulkhead({
    ...options,
    serverLimit: (server) => options.serverLimit(server),
    agentLimit: (agent) => options.agentLimit(agent),
    total: () => options.total,
    queue: () => options.queue,
  })
  const interceptor = attemptOf(step)
  const order: string[] = []

  const begin = (asked: Asked = {}): Running => {
    const { server = 'files', agent = 'default', principal, timeoutMs = 30_000, carries } = asked
    const controller = new AbortController()
    const outcome = Promise.withResolvers<Result>()
    outcome.promise.catch(() => {})
    const traits = { readOnly: false, idempotent: false, timeoutMs, ...(carries && { carries }) }
    const known = callOf().caller
    const caller = { ...known, agent, principal: principal ?? known.principal, admin: principal === undefined }
    const { signal } = controller
    let sent = false
    const answer = interceptor(callOf({ entry: entryOf({ server, traits }), caller, signal }), () => {
      sent = true
      order.push(`${agent} ${server}`)
      return outcome.promise
    })
    answer.catch(() => {})
    const end = async (how?: Error) => {
      if (how) outcome.reject(how)
      else outcome.resolve(textResult('done'))
      await settled()
    }
    return {
      get sent() {
        return sent
      },
      answer,
      end,
      async abort() {
        controller.abort(new Error('called off'))
        await end(signal.reason)
      },
    }
  }
  return { ...rest, interceptor, clock, options, begin, order }
}
