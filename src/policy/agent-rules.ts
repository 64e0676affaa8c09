import type { AgentConfig } from '../config/schema.ts'
import type { CompilePattern } from './patterns.ts'
import { compileRuleSet, type RuleSet } from './rule-set.ts'
import { type Permission, permission, type Question, type Refusal } from './verdict.ts'

/** The rules of one agent, as they are written. */
export type WrittenAgent = Pick<AgentConfig, 'allow' | 'deny'>

/** The rules of one agent, without those that it inherits. */
export interface AgentRules {
  /** Where they stand in the configuration. */
  readonly path: string
  readonly allow: RuleSet<Permission>
  readonly deny: RuleSet<Refusal>
  readonly metaTools: Permission
  readonly serverNotAllowed: Refusal
  readonly toolNotAllowed: Refusal
  /** A rule for tools allows only where a rule for servers does, too. */
  readonly toolsNeedServer: boolean
}

/** Compiles what one agent says, each rule into the ruling that it makes. */
export function compileAgent(
  agent: string,
  { allow, deny }: WrittenAgent,
  compile: CompilePattern,
  toolsNeedServer = false,
): AgentRules {
  const path = `agents.${agent}`
  const byDefault = { ...refused, rule: `${path} (default deny)` }
  const advice = `Use something else, or ask the operator to add it to ${path}.allow.`
  return {
    path,
    toolsNeedServer,
    allow: compileRuleSet(allow, `${path}.allow`, compile, permission),
    deny: compileRuleSet(deny, `${path}.deny`, compile, denied),
    metaTools: permission(`${path} (meta-tools)`),
    serverNotAllowed: {
      ...byDefault,
      auditReason: 'server_not_allowed',
      // Whether the server has what was asked for is not told: this is said of what it has not, too.
      sentence: ({ agent, server }) =>
        `The agent ${agent} may not use this: no rule allows it the server ${server}. ${advice}`,
    },
    toolNotAllowed: {
      ...byDefault,
      auditReason: 'tool_not_allowed',
      sentence: ({ agent, server, name }) =>
        `The agent ${agent} may not use ${server}.${name}: no rule allows it. ${advice}`,
    },
  }
}

const refused = { allowed: false, code: 'DENIED_BY_POLICY' } as const

const denied = (rule: string, about: 'server' | 'tool'): Refusal => ({
  ...refused,
  rule,
  auditReason: `${about}_not_allowed`,
  sentence: about === 'server' ? serverDenied : toolDenied,
})

const serverDenied = ({ agent, server }: Question, rule: string) =>
  `The agent ${agent} may not use the server ${server}: ${rule} denies it. Use another server, or ask the operator.`

const toolDenied = ({ agent, server, name }: Question, rule: string) =>
  `The agent ${agent} may not use ${server}.${name}: ${rule} denies it. Use another tool, or ask the operator.`
