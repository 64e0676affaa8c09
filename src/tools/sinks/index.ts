import type { Config } from '../../config/schema.ts'
import type { Access } from '../../core/access.ts'
import type { Clock } from '../../core/clock.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Tool } from '../define.ts'
import { fileSink } from './file/index.ts'
import type { Sink } from './sink.ts'
import { sinkTool } from './sink-tool.ts'
import { stdoutSink } from './stdout.ts'
import { toolSink } from './tool.ts'
import { webhookSink } from './webhook/index.ts'

export interface SinksOptions {
  readonly sinks: Config['sinks']
  /** Sinks of plugins. */
  readonly custom?: readonly Sink[]
  readonly access: Access
  readonly clock: Clock
  readonly log: Log
  /** Prints to standard output; absent where that belongs to a client, who would take it for the protocol. */
  readonly stdout?: (text: string) => Promise<void> | void
}

/** The sinks of a configuration and of its plugins, as tools for a source named `sink` (J4). */
export function createSinks(options: SinksOptions): Tool[] {
  const { sinks, custom = [], clock } = options
  const configured = Object.entries(sinks).flatMap(([name, config]) => {
    const sink = config.disabled ? undefined : sinkOf(name, config, options)
    return sink ? [{ ...sink, description: config.description ?? aboutKind[config.kind] }] : []
  })
  const twice = custom.find(({ name }) => Object.hasOwn(sinks, name))
  if (twice) {
    throw new ToolwayError(
      'INTERNAL',
      `There are two sinks named "${twice.name}": one in the configuration and one of a plugin. Rename one of them.`,
    )
  }
  return [...configured, ...custom].map((sink) => sinkTool(sink, clock))
}

type SinkConfig = Config['sinks'][string]

const aboutKind: Readonly<Record<SinkConfig['kind'], string>> = {
  file: 'Keeps a text as a file.',
  webhook: 'Sends a text to another system.',
  stdout: "Prints a text on the operator's terminal.",
  tool: 'Hands a text to another tool to keep.',
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
      log.warn({ sink: name }, 'standard output belongs to the client here, so this sink is left out')
      return undefined
  }
}
