/** One round of the agent loop. */
export interface AgentStep {
  /** What the model said beside its calls. */
  readonly text: string
  readonly calls: readonly AgentCall[]
}

export interface AgentCall {
  readonly name: string
  /** As JSON. */
  readonly arguments: string
  readonly result: string
  readonly isError: boolean
}

/** Looks at the steps so far and says why they should be the last, as the end of "no more tools, because …". */
export type StopCondition = (steps: readonly AgentStep[]) => string | undefined

export const stepLimit =
  (most: number): StopCondition =>
  (steps) =>
    steps.length >= most ? `the limit of ${most} step${most === 1 ? '' : 's'} is reached` : undefined

/** A model that gets the same answer to the same question so often learns nothing more from it. */
const maxRepeats = 4

export const noCircles: StopCondition = (steps) => {
  const latest = steps.at(-1)?.calls ?? []
  const repeated = latest.find((call) => timesMade(steps, call) >= maxRepeats)
  return repeated && `${repeated.name} was called ${maxRepeats} times with the same arguments and the same result`
}

/** How often a call was made and came to the same. */
export const timesMade = (steps: readonly AgentStep[], call: AgentCall): number =>
  steps
    .flatMap(({ calls }) => calls)
    .filter(({ name, arguments: args, result }) => {
      return name === call.name && args === call.arguments && result === call.result
    }).length
