import type { Operation } from '../../core/audit.ts'
import type { Call } from '../../core/call.ts'
import type { Entry } from '../../core/entry.ts'
import { text } from './attribute.ts'

/** What a call is about, in the words of the MCP conventions. */
export interface Subject {
  readonly method: string
  /** Of few values, so no URI is part of it. */
  readonly name: string
  /** Ready to be written, with a comma between each. */
  readonly attributes: string
}

export interface SubjectOptions {
  /** Takes secrets out of a name. */
  redact(text: string): string
  /** Whether a source is somebody else, or runs in this process. */
  isForwarded(server: string): boolean
}

const methods: Readonly<Record<string, string>> = {
  call_tool: 'tools/call',
  read_resource: 'resources/read',
  get_prompt: 'prompts/get',
  complete: 'completion/complete',
  subscribe: 'resources/subscribe',
}

/** Says what calls are about. What it has said of an entry it remembers: most calls are about the same few. */
export function createSubjects(options: SubjectOptions): (call: Call, operation: Operation) => Subject {
  const known = new WeakMap<Entry, Subject>()
  return ({ entry, input }, operation) => {
    const method = methods[operation] ?? operation
    let subject = known.get(entry)
    if (subject?.method !== method) {
      subject = subjectOf(entry, method, options)
      known.set(entry, subject)
    }
    if (entry.kind !== 'resource' && entry.kind !== 'template') return subject
    // A template stands for many resources.
    const uri = text('mcp.resource.uri', options.redact(input.uri ?? entry.name))
    return { ...subject, attributes: `${subject.attributes},${uri}` }
  }
}

function subjectOf({ kind, server, name }: Entry, method: string, { redact, isForwarded }: SubjectOptions): Subject {
  const clean = redact(name)
  const attributes = [text('mcp.method.name', method), text('toolway.server', redact(server))]
  if (kind === 'prompt') attributes.push(text('gen_ai.prompt.name', clean))
  if (kind === 'tool') {
    attributes.push(text('gen_ai.tool.name', clean), text('tool.type', isForwarded(server) ? 'forwarded' : 'native'))
    if (method === 'tools/call') attributes.push(text('gen_ai.operation.name', 'execute_tool'))
  }
  const isNamed = kind === 'tool' || kind === 'prompt'
  return { method, name: isNamed ? `${method} ${clean}` : method, attributes: attributes.join(',') }
}
