import type { Document } from './documents.ts'
import type { Environment } from './interpolate.ts'
import { merge } from './merge.ts'
import { type Branch, branch, leaf, member } from './tree.ts'

/** A variable says who callers are by default; the older one counts only beside the rules that it belongs to. */
export function withDefaultAgent(tree: Branch, documents: readonly Document[], env: Environment): Branch {
  const ruled = documents.some(({ dialect }) => dialect === 'gateway-rules')
  const name = env.TOOLWAY_DEFAULT_AGENT ? 'TOOLWAY_DEFAULT_AGENT' : ruled ? 'GATEWAY_DEFAULT_AGENT' : undefined
  const agent = name === undefined ? undefined : env[name]
  if (!name || !agent) return tree
  const at = { file: { path: name, text: agent }, offset: 0, key: 'defaults.agent' }
  // What a variable holds is taken as it is: a `${` in it means nothing.
  const value = leaf(
    at,
    agent.replaceAll('${', () => '$${'),
  )
  return merge(tree, branch(at, [['defaults', member(branch(at, [['agent', member(value)]]))]]))
}
