import type { Clock } from '../../core/clock.ts'
import type { Observed } from '../../core/observer.ts'
import type { TraceContext } from '../../core/trace-context.ts'
import type { Step } from '../../core/trail.ts'
import { remembered, text, whole } from './attribute.ts'
import { createCallerAttributes } from './caller-attributes.ts'
import { createEpoch } from './epoch.ts'
import { spanId } from './ids.ts'
import type { ServerFacts } from './server-facts.ts'
import { type Span, spanJson } from './span.ts'
import { createSubjects } from './subject.ts'
import { parentOf } from './tracing.ts'

export interface CallSpansOptions {
  readonly clock: Clock
  /** Takes secrets out of a name. */
  redact(text: string): string
  /** The servers that calls are sent to; what is not among them runs in this process. */
  readonly servers: ReadonlyMap<string, ServerFacts>
}

/** A call that is over as spans: one of its own, and one for each step on its way. The first is the call itself. */
export function createCallSpans({ clock, redact, servers }: CallSpansOptions): (observed: Observed) => string[] {
  const subjectOf = createSubjects({ redact, isForwarded: (server) => servers.has(server) })
  const callerOf = createCallerAttributes(redact)
  const version = remembered('mcp.protocol.version')
  const epoch = createEpoch(clock)

  const sent = ({ attributes, protocolVersion }: ServerFacts, attempt: number): string => {
    const spoken = protocolVersion()
    const known = spoken === undefined ? attributes : `${attributes},${version(spoken)}`
    return attempt === 1 ? known : `${known},${whole('toolway.attempt', attempt)}`
  }

  return ({ call, operation, at, start, ms, outcome, trail }) => {
    const place = trail.trace as TraceContext
    const parent = parentOf(call)
    const subject = subjectOf(call, operation)
    const facts = servers.get(call.entry.server)
    const offset = epoch(at, start)
    const end = offset + start + ms
    const wrong = outcome.kind === 'tool_error' ? outcome.kind : outcome.code
    const cached = trail.cache === undefined ? '' : `,${text('toolway.cache', trail.cache)}`
    const own: Span = {
      place,
      parent,
      isRemote: parent !== undefined && call.trace === undefined,
      name: subject.name,
      kind: call.parent === undefined ? 'server' : 'internal',
      start: offset + start,
      end,
      attributes: `${subject.attributes},${callerOf(call)}${cached}`,
      error: wrong,
    }
    const spans = [spanJson(own)]
    let last = place
    let attempts = 0
    for (const step of trail.steps) {
      const time = { start: offset + step.start, end: step.end === undefined ? end : offset + step.end }
      // What was still going on when the call was over ended with it.
      const error = step.end === undefined ? wrong : step.error
      if (step.name !== 'attempt') spans.push(spanJson({ ...waiting(step, last), ...time, error }))
      else if (step.trace && facts) {
        last = step.trace
        const attributes = `${subject.attributes},${sent(facts, ++attempts)}`
        const about = { place: last, parent: place, name: subject.name, kind: 'client', attributes } as const
        // A tool's own failure is that of the attempt which brought it.
        spans.push(spanJson({ ...about, ...time, error: error ?? (outcome.kind === 'tool_error' ? wrong : undefined) }))
      }
    }
    return spans
  }
}

/** Waiting for a person or for a place. Nothing happens elsewhere meanwhile, so nobody had to know its id before. */
const waiting = ({ name }: Step, parent: TraceContext): Omit<Span, 'start' | 'end'> => {
  const { traceparent } = parent
  const place = { ...parent, traceparent: `${traceparent.slice(0, 36)}${spanId()}${traceparent.slice(52)}` }
  return { place, parent, name, kind: 'internal', attributes: '' }
}
