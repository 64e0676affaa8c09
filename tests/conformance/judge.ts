import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { Check, Revision, ScenarioResult } from './run.ts'

/** What is expected to fail: a scenario as a whole, or one check of it. */
export type ExpectedFailure = string

export interface Verdict {
  /** Required, failing, and nobody expects it. */
  readonly unexpected: readonly string[]
  /** Expected to fail, but it passes or is not even run: the entry has to go. */
  readonly stale: readonly string[]
}

const fails = ({ status }: Check) => status === 'FAILURE' || status === 'WARNING'

/** Holds what was found against what was expected. A warning counts as a failure: the suite's own runs do not say so. */
export function judge(results: readonly ScenarioResult[], expected: readonly ExpectedFailure[]): Verdict {
  const failing = results.flatMap(({ scenario, required, checks }) =>
    checks.filter(fails).map((check) => ({ scenario, required, entry: `${scenario}:${check.id}`, check })),
  )
  const isExpected = ({ scenario, entry }: { scenario: string; entry: string }) =>
    expected.includes(scenario) || expected.includes(entry)
  const idle = results.filter(
    ({ required, checks }) => required && !checks.some((check) => check.status === 'SUCCESS' || fails(check)),
  )
  return {
    unexpected: [
      ...failing
        .filter((failure) => failure.required && !isExpected(failure))
        .map(({ entry, check }) => `${entry} ${check.status}: ${check.errorMessage ?? check.name}`),
      ...idle.map(({ scenario }) => `${scenario} has checked nothing`),
    ],
    stale: expected.filter(
      (entry) => !failing.some((failure) => entry === failure.scenario || entry === failure.entry),
    ),
  }
}

/**
 * The checks that succeed in the first run and not in the second, required or not. One that has become a mere remark
 * is not lost: the suite makes it where a server has taken another way that the protocol allows, such as plain JSON.
 */
export function lost(direct: readonly ScenarioResult[], through: readonly ScenarioResult[]): string[] {
  const remaining = new Map(through.flatMap(numbered).map(({ key, check }) => [key, check]))
  return direct
    .flatMap(numbered)
    .filter(({ key, check }) => check.status === 'SUCCESS' && !isKept(remaining.get(key)))
    .map(({ key }) => {
      const check = remaining.get(key)
      return `${key} ${check ? `${check.status}: ${check.errorMessage ?? ''}` : 'was not made'}`
    })
}

const isKept = (check: Check | undefined) => check?.status === 'SUCCESS' || check?.status === 'INFO'

/** Checks of the same name are told apart by their number. */
function numbered({ scenario, checks }: ScenarioResult): { key: string; check: Check }[] {
  const seen = new Map<string, number>()
  return checks.map((check) => {
    const name = `${scenario}:${check.id} ${check.name}`
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    return { key: count === 1 ? name : `${name} (${count})`, check }
  })
}

/** The list in expected-failures.yaml for one side and revision. */
export function expectedFailures(side: 'server' | 'client', revision: Revision): readonly ExpectedFailure[] {
  const lists = parse(readFileSync(new URL('./expected-failures.yaml', import.meta.url), 'utf8'))
  const list: unknown = lists[side]?.[revision] ?? []
  if (!Array.isArray(list) || list.some((entry) => typeof entry !== 'string')) {
    throw new Error(`expected-failures.yaml: ${side} ${revision} is to be a list of scenario or scenario:check`)
  }
  return list
}
