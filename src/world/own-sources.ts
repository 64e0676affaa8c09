import type { Config } from '../config/schema.ts'
import type { Source } from '../core/source.ts'
import type { Policy } from '../policy/decide.ts'
import { toolSource } from '../tools/define.ts'
import { metaTools } from '../tools/meta/index.ts'
import { nativeTools } from '../tools/native/index.ts'
import type { Surroundings } from './world.ts'

/** The sources of what is not forwarded: the meta-tools and the native tools. */
export function ownSources(config: Config, policy: Policy, surroundings: Surroundings): readonly Source[] {
  const { access, clock } = surroundings
  const inProcess = { origin: 'native', timeoutMs: config.defaults.timeout, clock } as const
  const meta = toolSource({
    ...inProcess,
    name: 'toolway',
    description: 'Finds and runs the tools of every server',
    tools: metaTools({ access, asAgent: policy.actAs, status: surroundings.status, clock }),
  })
  const native = toolSource({
    ...inProcess,
    name: 'native',
    description: 'Tools built into Toolway',
    tools: nativeTools({ names: config.native.tools, clock }),
  })
  return [meta, native]
}
