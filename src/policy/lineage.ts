/**
 * An agent and those it inherits from, itself first: `team.role.junior`, `team.role`, `team`, as far as they are
 * configured. An agent whose parent is missing inherits from the next one up.
 */
export function lineage(agent: string, agents: { has(agent: string): boolean }): string[] {
  const names = [agent]
  for (let name = parentName(agent); name !== undefined; name = parentName(name)) if (agents.has(name)) names.push(name)
  return names
}

/** What the parent of an agent is called, whether or not there is one; undefined for a name without a dot. */
export function parentName(agent: string): string | undefined {
  const dot = agent.lastIndexOf('.')
  return dot > 0 ? agent.slice(0, dot) : undefined
}
