import { randomUUID } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import type { Access } from '../../core/access.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { ResultBody } from '../../core/result.ts'
import { Json } from '../../json/json.ts'
import { withoutHidden } from '../../lib/hidden-characters.ts'
import type { Tool } from '../define-tool.ts'
import { fileSink } from './file.ts'
import type { Sink } from './sink.ts'
import { type SharedWrites, sinkTool } from './sink-tool.ts'
import { fillAll } from './template.ts'
import { webhookSink } from './webhook.ts'

export interface SinksOptions {
  readonly sinks: Config['sinks']
  readonly custom?: readonly Sink[]
  readonly access: Access
  /** Set if several processes serve as one. */
  readonly shared?: SharedWrites | undefined
  readonly clock: Clock
  readonly log: Log
  /** Prints to standard output. Absent if standard output carries protocol messages to a client. */
  readonly stdout?: (text: string) => Promise<void> | void
}

/** The sinks from a configuration and its plugins, as tools in the source `sink` (J4). */
export function createSinks(options: SinksOptions): Tool[] {
  const { sinks, custom = [], shared, clock } = options
  const configured = Object.entries(sinks).flatMap(([name, config]) => {
    const sink = config.disabled ? undefined : sinkOf(name, config, options)
    return sink ? [{ ...sink, description: config.description ?? aboutKind[config.kind] }] : []
  })
  const twice = custom.find(({ name }) => Object.hasOwn(sinks, name))
  if (twice) {
    const sentence = `There are two sinks named "${twice.name}": one in the configuration and one in a plugin. Rename one of them.`
    throw new ToolwayError('INTERNAL', sentence)
  }
  return [...configured, ...custom].map((sink) => sinkTool(sink, clock, shared))
}

type SinkConfig = Config['sinks'][string]

const aboutKind: Readonly<Record<SinkConfig['kind'], string>> = {
  file: 'Stores text in a file.',
  webhook: 'Sends text to another system.',
  stdout: "Prints text on the operator's terminal.",
  tool: 'Stores text with another tool.',
}

function sinkOf(name: string, config: SinkConfig, options: SinksOptions): Omit<Sink, 'description'> | undefined {
  const { access, clock, log, stdout } = options
  switch (config.kind) {
    case 'file':
      return fileSink(name, config)
    case 'webhook':
      return webhookSink({ name, config, clock, log })
    case 'tool':
      return toolSink(name, config, access)
    case 'stdout':
      if (stdout) return stdoutSink(name, stdout)
      log.warn({ sink: name }, 'stdout sink is not offered, because standard output is used for MCP')
      return undefined
  }
}

/** A sink that prints artifacts. It strips terminal control sequences, because the text comes from an agent. */
const stdoutSink = (name: string, print: (text: string) => Promise<void> | void): Omit<Sink, 'description'> => ({
  name,
  async write({ id, content }) {
    const text = withoutHidden(content, 'kept')
    await print(text.endsWith('\n') ? text : `${text}\n`)
    return { uri: `sink://${name}/${id}` }
  },
})

/** A sink that passes artifacts to a tool, as a nested call for the same caller and under the same rules. */
const toolSink = (
  name: string,
  config: Extract<SinkConfig, { kind: 'tool' }>,
  access: Access,
): Omit<Sink, 'description'> => ({
  name,
  async write(artifact, { call, signal }) {
    const { entry } = await access.view(call.caller).resolve('tool', config.tool, { parent: call.id })
    // Refuse: a sink that writes to a sink could end up calling itself.
    if (entry.server === 'sink' || entry.traits.carries) {
      const sentence = `sinks.${name}.tool is ${entry.server}.${entry.name}, which runs other calls; the operator must name another tool.`
      throw new ToolwayError('INTERNAL', sentence)
    }
    const args = fillAll(config.arguments, artifact) as Record<string, unknown>
    const result = await access.handle({
      id: randomUUID(),
      parent: call.id,
      caller: call.caller,
      entry,
      input: { arguments: Json.of(args), meta: {} },
      signal,
      peer: call.peer,
      ...{ trace: call.trace, trail: call.trail },
    })
    if (result.isError) return result
    return { uri: uriIn(result.body.value) ?? `sink://${name}/${artifact.id}`, tool: `${entry.server}.${entry.name}` }
  },
})

function uriIn({ content = [], structuredContent }: ResultBody): string | undefined {
  const linked = content.find(({ type }) => type === 'resource_link')?.uri
  const told = linked ?? (structuredContent as { uri?: unknown } | null | undefined)?.uri
  return typeof told === 'string' && told.length <= 2_000 && URL.canParse(told) ? told : undefined
}
