import { randomUUID } from 'node:crypto'
import type { Access } from '../../core/access.ts'
import { ToolwayError } from '../../core/errors.ts'
import { Json } from '../../core/json.ts'
import type { ResultBody } from '../../core/result.ts'
import { fillAll } from './blanks.ts'
import type { Sink } from './sink.ts'

export interface ToolSinkConfig {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Hands artifacts to a tool: a call of its own, for the same caller and under the same rules as any. */
export const toolSink = (name: string, config: ToolSinkConfig, access: Access): Omit<Sink, 'description'> => ({
  name,
  async write(artifact, { call, signal }) {
    const { entry } = await access.view(call.caller).resolve('tool', config.tool)
    // A sink behind a sink could be behind itself.
    if (entry.server === 'sink' || entry.traits.carries) {
      throw new ToolwayError(
        'INTERNAL',
        `sinks.${name}.tool is ${entry.server}.${entry.name}, which runs other calls; the operator has to name a tool.`,
      )
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
      ...(call.trace && { trace: call.trace }),
    })
    if (result.isError) return result
    return { uri: uriIn(result.body.value) ?? `sink://${name}/${artifact.id}`, tool: `${entry.server}.${entry.name}` }
  },
})

/** Where the tool says that it has put it, if it does. */
function uriIn({ content = [], structuredContent }: ResultBody): string | undefined {
  const linked = content.find(({ type }) => type === 'resource_link')?.uri
  const told = linked ?? (structuredContent as { uri?: unknown } | null | undefined)?.uri
  return typeof told === 'string' && told.length <= 2_000 && URL.canParse(told) ? told : undefined
}
